"""One node: its cards and its host on one time axis."""

from typing import Final

from grafana.model import Dashboard, Panel, Query, Row
from grafana.parts import (
    CARD,
    CARD_LEGEND,
    COUNT_AXIS,
    FINDING_COLORS,
    GREEN,
    REASON_NUMBER,
    REASON_WORDS,
    RED,
    STATE_NUMBER,
    STATE_WORDS,
    WORKLOAD_NUMBER,
    WORKLOAD_WORDS,
    colored,
    columns,
    dashed,
    link,
    matching,
    of_cards,
    of_nodes,
    variables,
)

NO_CARD: Final = "No reading: the node has no card, or the card and its driver do not offer this."


def states() -> tuple[Panel, ...]:
    """Return the timelines of the cards' states, throttle reasons and workloads."""
    return (
        Panel(
            kind="state-timeline",
            title="State of the cards",
            description="The verdict on each card through time; hover for the moment it changed.",
            queries=(Query(of_cards(STATE_NUMBER), CARD_LEGEND),),
            empty="No verdict: the node has no card, or its agent was not running.",
            words=STATE_WORDS,
            width=24,
            height=7,
        ),
        Panel(
            kind="state-timeline",
            title="What holds the clocks down",
            description=(
                "The weightiest reason that the driver names for each card. The power cap is how a loaded card runs;"
                " heat, power brake and hardware slowdown are not."
            ),
            queries=(Query(of_cards(REASON_NUMBER), CARD_LEGEND),),
            empty="The driver does not say why clocks are held down.",
            words=REASON_WORDS,
            width=24,
            height=7,
        ),
        Panel(
            kind="state-timeline",
            title="Workload",
            description=(
                "Whether the job on each card is starved of input (with a named cause), merely leaves it underused, "
                "or is fine."
            ),
            queries=(Query(of_cards(WORKLOAD_NUMBER), CARD_LEGEND),),
            empty="No verdict: the node has no card, or its agent was not running.",
            words=WORKLOAD_WORDS,
            width=24,
            height=7,
        ),
    )


def _findings() -> Panel:
    expr = of_cards('heatsoak_verdict_active{mode="on"}')
    shown = {"gpu": "GPU", "state": "State", "rule": "Rule", "cause": "Cause", "name": "Model", "uuid": "UUID"}
    return Panel(
        kind="table",
        title="Findings that hold now",
        description="Every rule that holds for a card of this node, those that only inform (state ok) too.",
        queries=(Query(expr, table=True),),
        empty="No rule holds for any card of this node.",
        width=24,
        height=6,
        transformations=columns(shown),
        overrides=(colored("State", texts=FINDING_COLORS),),
        links=(link("This card's history", "heatsoak-card", uuid="${__data.fields.UUID}"),),
    )


def _line(title: str, text: str, *queries: Query, unit: str, **more: object) -> Panel:
    plain = {"empty": NO_CARD, "unit": unit, "custom": {"lineWidth": 1}}
    return Panel(kind="timeseries", title=title, description=text, queries=queries, **{**plain, **more})  # type: ignore[arg-type]


def temperature() -> Panel:
    """Return temperatures beside the lowest of the cards' own thresholds."""
    limits = of_cards('heatsoak_gpu_temperature_threshold_celsius{threshold=~"slowdown|shutdown"}')
    return _line(
        "Temperature against the cards' own thresholds",
        "Core temperature; dashed, where the driver says so, the lowest temperature at which one of these cards slows "
        "down or shuts down.",
        Query(of_cards("heatsoak_gpu_temperature_celsius"), CARD_LEGEND),
        Query(f"min by (threshold) ({limits})", "threshold {{threshold}}"),
        unit="celsius",
        overrides=(dashed("^threshold ", RED),),
    )


def throttle_seconds() -> Panel:
    """Return the share of time that busy cards were held down, by reason."""
    return _line(
        "Held down while busy",
        "Share of the time in which a card at work was held down, by reason.",
        Query(
            of_cards("rate(heatsoak_gpu_throttle_busy_seconds_total[$__rate_interval])") + " > 0",
            CARD_LEGEND + " {{reason}}",
        ),
        unit="percentunit",
        empty="No card was held down while it worked.",
        low=0,
    )


def _load() -> tuple[Panel, ...]:
    return (
        _line(
            "Utilisation",
            "Share of time with a kernel running. A starved card shows here, a slow one does not.",
            Query(of_cards("heatsoak_gpu_utilization_ratio"), CARD_LEGEND),
            unit="percentunit",
            low=0,
            high=1,
        ),
        _line(
            "Power",
            "Power draw; dashed the lowest power limit in force.",
            Query(of_cards("heatsoak_gpu_power_watts"), CARD_LEGEND),
            Query("min(" + of_cards('heatsoak_gpu_power_limit_watts{limit="enforced"}') + ")", "limit in force"),
            unit="watt",
            low=0,
            overrides=(dashed("^limit ", RED),),
        ),
        temperature(),
        _line(
            "Clock against the card's highest",
            (
                "SM clock as a share of the highest of the card; idle cards clock down, loaded ones at their power "
                "limit too."
            ),
            Query(
                of_cards(
                    f'(heatsoak_gpu_clock_hertz{{clock="sm"}} / on ({CARD}) heatsoak_gpu_clock_max_hertz{{clock="sm"}})'
                ),
                CARD_LEGEND,
            ),
            unit="percentunit",
            low=0,
            high=1,
        ),
        _line(
            "Performance state",
            "0 is the highest, 15 the lowest; an idle card may stay at 0.",
            Query(of_cards("heatsoak_gpu_pstate"), CARD_LEGEND),
            unit="none",
            low=0,
            high=15,
            custom={"lineInterpolation": "stepAfter"},
        ),
        throttle_seconds(),
        _line(
            "Memory in use",
            "Device memory in use as a share of what is installed.",
            Query(
                of_cards(f"(heatsoak_gpu_memory_used_bytes / on ({CARD}) heatsoak_gpu_memory_total_bytes)"), CARD_LEGEND
            ),
            unit="percentunit",
            low=0,
            high=1,
        ),
        _line(
            "Tensor cores and memory bandwidth",
            (
                "Share of time the tensor cores worked, and of the memory bandwidth in use, where the driver counts "
                "it (GPM)."
            ),
            Query(of_cards("heatsoak_gpu_tensor_active_ratio"), CARD_LEGEND + " tensor"),
            Query(of_cards("heatsoak_gpu_dram_active_ratio"), CARD_LEGEND + " memory"),
            unit="percentunit",
            empty="The driver offers no GPM activity for this card: it comes with data-centre cards since Hopper.",
            low=0,
            high=1,
        ),
    )


def _errors() -> tuple[Panel, ...]:
    reason = "Not offered by this card: consumer cards have neither ECC nor NVLink counters."
    rise = "[$__rate_interval]"
    return (
        _line(
            "Memory errors",
            (
                "ECC errors since the driver was loaded; rows that were remapped. Corrected errors one by one are "
                "harmless."
            ),
            Query(of_cards('heatsoak_gpu_ecc_errors_total{counter="volatile"}'), CARD_LEGEND + " {{type}}"),
            Query(of_cards("heatsoak_gpu_remapped_rows_total") + " > 0", CARD_LEGEND + " remapped, {{cause}}"),
            unit="short",
            empty=reason,
            low=0,
            custom=COUNT_AXIS,
        ),
        _line(
            "XID errors and PCIe replays",
            "New XID errors of the driver, and PCIe packets that were sent again, in each interval.",
            Query(of_cards(f"increase(heatsoak_gpu_xid_events_total{rise})"), CARD_LEGEND + " XID"),
            Query(of_cards(f"increase(heatsoak_gpu_pcie_replays_total{rise})"), CARD_LEGEND + " PCIe replays"),
            unit="short",
            low=0,
            custom=COUNT_AXIS,
        ),
        _line(
            "PCIe link",
            (
                "Lanes in use times generation, as a share of the most that card and slot allow; it falls while a "
                "card is idle."
            ),
            Query(
                of_cards(
                    f"(heatsoak_gpu_pcie_generation * on ({CARD}) heatsoak_gpu_pcie_width_lanes / on ({CARD}) "
                    f"(heatsoak_gpu_pcie_generation_max * on ({CARD}) heatsoak_gpu_pcie_width_max_lanes))"
                ),
                CARD_LEGEND,
            ),
            unit="percentunit",
            low=0,
            high=1,
        ),
        _line(
            "NVLink",
            "Payload over all links of a card, and errors on them in each interval.",
            Query(of_cards("rate(heatsoak_gpu_nvlink_transmit_bytes_total[$__rate_interval])"), CARD_LEGEND + " out"),
            Query(of_cards("rate(heatsoak_gpu_nvlink_receive_bytes_total[$__rate_interval])"), CARD_LEGEND + " in"),
            Query(
                of_cards(f"increase(heatsoak_gpu_nvlink_errors_total{rise})") + " > 0", CARD_LEGEND + " {{kind}} errors"
            ),
            unit="Bps",
            empty=reason,
            low=0,
            overrides=(
                {
                    "matcher": matching("errors$"),
                    "properties": [
                        {"id": "unit", "value": "short"},
                        {"id": "custom.axisPlacement", "value": "right"},
                    ],
                },
            ),
        ),
    )


def host() -> tuple[Panel, ...]:
    """Return what the host did, on the cards' time axis."""
    rate = "[$__rate_interval]"
    missing = "The kernel does not offer this, or the collector is switched off."
    return (
        _line(
            "Host CPU by mode",
            "CPUs at work by mode; idle time is left out, iowait is time with a task waiting for a disk.",
            Query(of_nodes(f'rate(heatsoak_host_cpu_seconds_total{{mode!="idle"}}{rate})'), "{{mode}}"),
            Query(of_nodes("heatsoak_host_cpus"), "CPUs online"),
            unit="none",
            empty=missing,
            low=0,
            custom={"fillOpacity": 40, "lineWidth": 0, "stacking": {"mode": "normal", "group": "A"}},
            overrides=(
                dashed("^CPUs online$", GREEN),
                {
                    "matcher": {"id": "byName", "options": "CPUs online"},
                    "properties": [
                        {"id": "custom.stacking", "value": {"mode": "none", "group": "B"}},
                        {"id": "custom.lineWidth", "value": 1},
                    ],
                },
            ),
        ),
        _line(
            "Pressure",
            "Share of the time in which some task waited for a CPU, for memory or for a disk (PSI).",
            Query(of_nodes(f'rate(heatsoak_host_pressure_seconds_total{{stall="some"}}{rate})'), "{{resource}}"),
            unit="percentunit",
            empty="The kernel counts no pressure; boot it with psi=1.",
            low=0,
        ),
        _line(
            "Disks",
            "Bytes read and, below, written.",
            Query(of_nodes(f"rate(heatsoak_host_disk_read_bytes_total{rate})"), "{{device}} read"),
            Query(of_nodes(f"-rate(heatsoak_host_disk_written_bytes_total{rate})"), "{{device}} written"),
            unit="Bps",
            empty="No block device of its own: all disks are excluded or the node boots from the network.",
        ),
        _line(
            "Network",
            "Bytes received and, below, sent.",
            Query(of_nodes(f"rate(heatsoak_host_network_receive_bytes_total{rate})"), "{{device}} in"),
            Query(of_nodes(f"-rate(heatsoak_host_network_transmit_bytes_total{rate})"), "{{device}} out"),
            unit="Bps",
            empty="No network device that is not excluded.",
        ),
        _line(
            "Host memory",
            "Memory that programs can still have, and what is installed.",
            Query(of_nodes("heatsoak_host_memory_available_bytes"), "available"),
            Query(of_nodes("heatsoak_host_memory_total_bytes"), "total"),
            unit="bytes",
            empty=missing,
            low=0,
            overrides=(dashed("^total$", GREEN),),
        ),
        _line(
            "Load",
            "Tasks running or in uninterruptible sleep, averaged over a minute; dashed the CPUs.",
            Query(of_nodes("heatsoak_host_load1"), "load"),
            Query(of_nodes("heatsoak_host_cpus"), "CPUs"),
            unit="none",
            empty=missing,
            low=0,
            overrides=(dashed("^CPUs$", GREEN),),
        ),
    )


NODE_BOARD: Final = Dashboard(
    uid="heatsoak-node",
    title="heatsoak: node",
    description="The cards of one node and their host on one time axis.",
    variables=variables(one_node=True),
    rows=(
        Row("Verdicts", (*states()[:2], _findings())),
        Row("Cards", _load()),
        Row("Errors and links", _errors()),
        Row("Work and host, on the cards' time axis", (states()[2], *host())),
    ),
    start="now-3h",
)
