"""The input pipeline: is the card starved, by what, and what would tuning give."""

from typing import Final

from grafana.model import Dashboard, Panel, Query, Row, Step
from grafana.node import host, states
from grafana.parts import (
    CARD,
    CARD_LEGEND,
    ORANGE,
    RED,
    columns,
    dashed,
    in_unit,
    of_cards,
    of_nodes,
    variables,
)

_FED: Final = "No number while no card is starved or underused: they come with the finding."


def _evidence(quantities: str) -> str:
    return of_cards(f'heatsoak_verdict_evidence{{rule="input_bound", quantity=~"{quantities}"}}')


def _duty() -> Panel:
    return Panel(
        kind="timeseries",
        title="GPU duty",
        description=(
            "Share of time with a kernel running, a minute's mean; dashed the duty below which a card may starve."
        ),
        queries=(
            Query(of_cards("avg_over_time(heatsoak_gpu_utilization_ratio[1m])"), CARD_LEGEND),
            Query(f"max({_evidence('threshold_ratio')})", "threshold"),
        ),
        empty="No card on this node, or the card reports no utilisation.",
        unit="percentunit",
        low=0,
        high=1,
        overrides=(dashed("^threshold$", RED),),
    )


def _process() -> tuple[Panel, ...]:
    return (
        Panel(
            kind="timeseries",
            title="CPU of the job's process, and what it may use",
            description=(
                "Cores that the starved process used, the CPUs it is pinned to and its quota, as the finding's "
                "evidence has them."
            ),
            queries=(Query(_evidence("process_cores|allowed_cores|quota_cores"), CARD_LEGEND + " {{quantity}}"),),
            empty=_FED,
            unit="none",
            low=0,
            overrides=(dashed("(allowed|quota)_cores$", RED),),
        ),
        Panel(
            kind="timeseries",
            title="What the job's process waits for",
            description=(
                "Share of quota periods that ran out, share of time waiting for a disk, share of the host's CPUs in "
                "use, as the finding's evidence has them."
            ),
            queries=(
                Query(
                    _evidence("throttled_periods_ratio|disk_pressure_ratio|host_used_ratio"),
                    CARD_LEGEND + " {{quantity}}",
                ),
            ),
            empty=_FED,
            unit="percentunit",
            low=0,
            high=1,
        ),
    )


def _causes() -> Panel:
    expr = of_cards('heatsoak_verdict_active{rule="input_bound", mode="on"}')
    return Panel(
        kind="table",
        title="Why, in one word",
        description=(
            "cgroup_quota: raise the job's CPU limit. cpuset: give it more CPUs. host_cpu: take other work off the "
            "host. io: a faster disk or a cache. parallelism: more loader workers. Other words are no cause, only "
            "low duty."
        ),
        queries=(Query(expr, table=True),),
        empty="No job on this node is starved or underused.",
        height=7,
        transformations=columns({"node": "Node", "gpu": "GPU", "state": "State", "cause": "Cause"}),
    )


def _bound() -> Panel:
    duty = of_cards(f"avg by ({CARD}) (avg_over_time(heatsoak_gpu_utilization_ratio[10m]))")
    starving = f'and on ({CARD}) heatsoak_workload_state{{state="input_bound"}} == 1'
    return Panel(
        kind="bargauge",
        title="Most that feeding would give",
        description=(
            "How many times as fast a starved job would run if its card never waited: 1 over the last 10 minutes' duty."
        ),
        queries=(Query(f"1 / ({duty} {starving})", CARD_LEGEND),),
        empty="No job on this node is starved of input.",
        unit="none",
        decimals=1,
        low=1,
        height=7,
        steps=(Step(None, "yellow"), Step(1.5, ORANGE), Step(3, RED)),
    )


def _measured() -> tuple[Panel, ...]:
    series = "heatsoak_probe_pipeline_images_per_second"
    keys = f"{CARD}, dtype, shape, mode, device"
    tuned, untuned = f'{series}{{variant="together_tuned"}}', f'{series}{{variant="together_untuned"}}'
    none = "No pipeline probe yet: run heatsoak probe pipeline, or heatsoak bench, on an idle node."
    gain = f"{tuned} / on ({keys}) group_left () {untuned}"
    return (
        Panel(
            kind="bargauge",
            title="Pipeline probe: host, card, both",
            description=(
                "Images a second that the host can feed alone (tuned and untuned tf.data), the card can eat alone, and "
                "both together, at the last pipeline probe."
            ),
            queries=(Query(of_nodes(series), "{{node}} {{variant}} {{shape}}"),),
            empty=none,
            unit="none",
            decimals=0,
            low=0,
            steps=(Step(None, "light-blue"),),
        ),
        Panel(
            kind="table",
            title="What tuning gave in the probe",
            description="Throughput with parallel decoding and prefetch over that without, host and card together.",
            queries=(Query(of_nodes(f"({gain})"), table=True),),
            empty=none,
            transformations=columns({"node": "Node", "gpu": "GPU", "shape": "Shape", "Value": "Tuned over untuned"}),
            overrides=(in_unit("Tuned over untuned", "none", 2),),
        ),
    )


PIPELINE: Final = Dashboard(
    uid="heatsoak-pipeline",
    title="heatsoak: input pipeline",
    description="Whether cards wait for their input, what holds the input up, and what tuning would give.",
    variables=variables(one_node=True),
    rows=(
        Row("Is the card fed?", (states()[2], _causes(), _bound())),
        Row("Card, process and host on one time axis", (_duty(), *_process(), *host()[:3])),
        Row("What the pipeline probe measured", _measured()),
    ),
    start="now-1h",
)
