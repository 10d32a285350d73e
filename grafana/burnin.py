"""A burn-in: every card's way to thermal steady state, its throughput first to last, its errors, its verdict."""

from typing import Final

from grafana.model import Dashboard, Panel, Query, Row, Step
from grafana.node import states, temperature, throttle_seconds
from grafana.parts import (
    CARD,
    CARD_LEGEND,
    CARDS,
    GREEN,
    ORANGE,
    QUIET,
    RED,
    SCORE_STEPS,
    SHARE_AXIS,
    colored,
    columns,
    in_unit,
    of_cards,
    of_nodes,
    variables,
)

_NOT_RUNNING: Final = "No burn-in has run on this node since its agent started."


def _progress() -> tuple[Panel, ...]:
    return (
        Panel(
            kind="bargauge",
            title="Progress",
            description="How much of the burn-in is done.",
            queries=(Query(of_nodes("heatsoak_burnin_progress_ratio"), "{{node}}"),),
            empty=_NOT_RUNNING,
            unit="percentunit",
            low=0,
            high=1,
            width=8,
            height=4,
            steps=(Step(None, "light-blue"), Step(1, GREEN)),
        ),
        Panel(
            kind="stat",
            title="Phase",
            description="The phase that the burn-in is in.",
            queries=(Query(of_nodes("(heatsoak_burnin_phase == 1)"), "{{node}}: {{phase}}"),),
            empty=_NOT_RUNNING,
            width=8,
            height=4,
            steps=(Step(None, QUIET),),
            options={"textMode": "name"},
        ),
        Panel(
            kind="stat",
            title="Time left",
            description="Seconds that the burn-in will still take.",
            queries=(Query(of_nodes("heatsoak_burnin_remaining_seconds"), "{{node}}"),),
            empty=_NOT_RUNNING,
            unit="s",
            width=8,
            height=4,
            steps=(Step(None, QUIET),),
        ),
    )


def _curves() -> tuple[Panel, ...]:
    slope = of_cards("deriv(heatsoak_gpu_temperature_celsius[5m])") + " * 60"
    last = f"card:heatsoak_probe_value:last{{{CARDS}}}"
    best = f"{last} / max_over_time({last}[$__range])"
    return (
        temperature(),
        Panel(
            kind="timeseries",
            title="Change of temperature",
            description=(
                "Degrees a minute over the last 5 minutes: a card is in steady state when it stays near 0 under load."
            ),
            queries=(Query(slope, CARD_LEGEND),),
            empty="No card with a temperature in this time.",
            unit="none",
            decimals=1,
            steps=(Step(None, GREEN),),
        ),
        Panel(
            kind="timeseries",
            title="Probe throughput, first to last",
            description=(
                "Each judged probe as a share of the card's own best run in the time shown: a card that falls as it "
                "heats up falls here."
            ),
            queries=(Query(best, CARD_LEGEND + " {{probe}} {{dtype}}"),),
            empty="No judged probe in this time.",
            unit="percentunit",
            decimals=1,
            high=1,
            custom={"lineWidth": 2, "spanNulls": True, "lineInterpolation": "stepAfter", **SHARE_AXIS},
        ),
        throttle_seconds(),
    )


def _sums() -> tuple[Panel, ...]:
    score = f"bottomk(16, card:heatsoak_probe_score:ratio{{{CARDS}}})"
    return (
        Panel(
            kind="bargauge",
            title="Seconds held down while busy, by reason",
            description=(
                "Summed over the time shown. The power cap is how a loaded card runs; heat and power brake are not."
            ),
            queries=(_held('reason!="sw_power_cap"'), _held('reason="sw_power_cap"')),
            empty="No card was held down while it worked.",
            unit="s",
            low=0,
            height=9,
            steps=(Step(None, ORANGE),),
            overrides=(
                {
                    "matcher": {"id": "byFrameRefID", "options": "B"},
                    "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": "light-blue"}}],
                },
            ),
        ),
        Panel(
            kind="bargauge",
            title="Probe score against the model's median",
            description=(
                "100 % is the median of all cards of the model that this Prometheus knows; the bar starts at 85 %."
            ),
            queries=(Query(score, CARD_LEGEND + " {{probe}} {{dtype}}"),),
            empty="No judged probe yet.",
            unit="percentunit",
            decimals=1,
            low=0.85,
            high=1.02,
            height=9,
            steps=SCORE_STEPS,
        ),
    )


def _held(reasons: str) -> Query:
    seconds = f"increase(heatsoak_gpu_throttle_busy_seconds_total{{{reasons}}}[$__range])"
    return Query(f"sort_desc({of_cards(seconds)} > 1)", CARD_LEGEND + " {{reason}}")


def _errors() -> Panel:
    rises = (
        ("uncorrected", 'heatsoak_gpu_ecc_errors_total{type="uncorrected", counter="volatile"}', "ECC uncorrected"),
        ("corrected", 'heatsoak_gpu_ecc_errors_total{type="corrected", counter="volatile"}', "ECC corrected"),
        ("xid", "heatsoak_gpu_xid_events_total", "XID"),
        ("replays", "heatsoak_gpu_pcie_replays_total", "PCIe replays"),
        ("nvlink", "heatsoak_gpu_nvlink_errors_total", "NVLink"),
    )
    queries = tuple(
        Query(of_cards(f"sum by ({CARD}) (increase({metric}[$__range]))"), table=True) for _, metric, _ in rises
    )
    shown = {"node": "Node", "gpu": "GPU", "name": "Model"} | {
        f"Value #{chr(ord('A') + at)}": title for at, (_, _, title) in enumerate(rises)
    }
    steps = (Step(None, "transparent"), Step(1, RED))
    return Panel(
        kind="table",
        title="New errors in the time shown",
        description="Rise of each error counter; an empty cell means that this card has no such counter.",
        queries=queries,
        empty="None of the chosen cards has an error counter.",
        width=24,
        decimals=0,
        transformations=({"id": "merge", "options": {}}, *columns(shown)),
        overrides=(
            colored("ECC uncorrected", steps),
            colored("XID", (Step(None, "transparent"), Step(1, ORANGE))),
            *(in_unit(title, "none") for _, _, title in rises),
        ),
    )


BURNIN: Final = Dashboard(
    uid="heatsoak-burnin",
    title="heatsoak: burn-in",
    description=(
        "Every card's way to thermal steady state: heat, throughput first to last, throttling, errors, verdict."
    ),
    variables=variables(one_node=True),
    rows=(
        Row("Verdict so far", (*_progress(), states()[0])),
        Row("Heat and throughput", _curves()),
        Row("Sums", (*_sums(), _errors())),
    ),
    start="now-2h",
)
