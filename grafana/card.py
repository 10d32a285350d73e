"""One card through time, whichever node it sat in."""

from typing import Final

from grafana.model import Annotation, Dashboard, Panel, Query, Row, Step, Variable
from grafana.parts import (
    CARD,
    COUNT_AXIS,
    GREEN,
    ORANGE,
    REASON_NUMBER,
    REASON_WORDS,
    RED,
    SHARE_AXIS,
    STATE_NUMBER,
    STATE_WORDS,
    columns,
    dashed,
    matching,
)

_ONE: Final = 'uuid=~"$uuid", cluster=~"$cluster"'
_LEGEND: Final = "{{node}} GPU {{gpu}}"
_SPEED: Final = {"lineWidth": 2, "spanNulls": True, "lineInterpolation": "stepAfter"}
_UNPROBED: Final = "No judged probe of this card in this time: it was busy, or probes are off."


def _placed(expr: str) -> str:
    return f"{expr} * on ({CARD}) group_left (node, name) heatsoak_gpu_info{{{_ONE}}}"


def _variables() -> tuple[Variable, ...]:
    return (
        Variable("cluster", "Cluster", "label_values(heatsoak_node_info, cluster)"),
        Variable("serial", "Serial", 'label_values(heatsoak_gpu_info{cluster=~"$cluster"}, serial)'),
        Variable(
            "uuid",
            "Card",
            'label_values(heatsoak_gpu_info{cluster=~"$cluster", serial=~"$serial"}, uuid)',
            every=False,
        ),
    )


def _who() -> Panel:
    names = ("name", "serial", "node", "gpu", "rack", "position", "pci_bus_id", "driver", "vbios", "uuid")
    return Panel(
        kind="table",
        title="Which card, where",
        description="Identity and place of the card now; a card that was moved has its past under its old node's name.",
        queries=(Query(f"heatsoak_gpu_info{{{_ONE}}}", table=True),),
        empty="The card is in no node that is watched now; widen the time and look at the timelines.",
        width=24,
        height=4,
        transformations=columns({name: name.replace("_", " ") for name in names}),
    )


def _states() -> tuple[Panel, ...]:
    return (
        Panel(
            kind="state-timeline",
            title="State",
            description="The verdict on the card through time.",
            queries=(Query(_placed(STATE_NUMBER), _LEGEND),),
            empty="No verdict in this time.",
            words=STATE_WORDS,
            width=24,
            height=4,
        ),
        Panel(
            kind="state-timeline",
            title="What holds the clocks down",
            description="The weightiest reason that the driver names.",
            queries=(Query(_placed(REASON_NUMBER), _LEGEND),),
            empty="The driver does not say why clocks are held down.",
            words=REASON_WORDS,
            width=24,
            height=4,
        ),
        Panel(
            kind="state-timeline",
            title="Findings",
            description="Every rule that held for the card, with its cause; those of state ok only inform.",
            queries=(Query(_placed('heatsoak_verdict_active{mode="on"}'), "{{rule}} ({{cause}}): {{state}}"),),
            empty="No rule held for the card in this time.",
            width=24,
            height=6,
            steps=(Step(None, ORANGE),),
        ),
    )


def _speed() -> tuple[Panel, ...]:
    last = f"card:heatsoak_probe_value:last{{{_ONE}}}"
    own = f"{last} / quantile_over_time(0.5, {last}[7d])"
    return (
        Panel(
            kind="timeseries",
            title="Against the fleet's median",
            description="Judged probes against the median of all cards of the model under the same software.",
            queries=(Query(f"card:heatsoak_probe_score:ratio{{{_ONE}}}", "{{probe}} {{dtype}} {{shape}}"),),
            empty=_UNPROBED,
            unit="percentunit",
            decimals=1,
            custom={**_SPEED, **SHARE_AXIS},
        ),
        Panel(
            kind="timeseries",
            title="Drift against its own past week",
            description="Each judged probe over the median of the card's own runs in the seven days before.",
            queries=(Query(own, "{{probe}} {{dtype}} {{shape}}"),),
            empty=_UNPROBED,
            unit="percentunit",
            decimals=1,
            custom={**_SPEED, **SHARE_AXIS},
        ),
        _value("Matrix product", "heatsoak_probe_matmul_flops_per_second", "flops"),
        _value("ResNet-50 step", "heatsoak_probe_resnet50_images_per_second", "none"),
        Panel(
            kind="timeseries",
            title="Measured against its own reference",
            description=(
                "Value and reference of the finding that compares them: there is one while the card is slow or suspect."
            ),
            queries=(
                Query(
                    f'heatsoak_verdict_evidence{{{_ONE}, rule=~"degraded|slow_drift", quantity=~"value|reference"}}',
                    "{{rule}}: {{quantity}}",
                ),
            ),
            empty="No finding compared the card with its reference in this time.",
            unit="sishort",
            width=24,
            custom=_SPEED,
            overrides=(dashed(": reference$", GREEN),),
        ),
    )


def _value(title: str, metric: str, unit: str) -> Panel:
    return Panel(
        kind="timeseries",
        title=title,
        description="The last good value of each data type and shape; dashed the best in the time shown.",
        queries=(
            Query(f"{metric}{{{_ONE}}}", "{{dtype}} {{shape}}"),
            Query(f"max_over_time({metric}{{{_ONE}}}[$__range])", "best {{dtype}} {{shape}}"),
        ),
        empty=_UNPROBED,
        unit=unit,
        custom=_SPEED,
        overrides=(dashed("^best ", GREEN),),
    )


def _circumstances() -> tuple[Panel, ...]:
    return (
        Panel(
            kind="timeseries",
            title="Clock and temperature during probes",
            description=(
                "What the card did in each probe's timed window: lower clocks or more heat explain a slower run."
            ),
            queries=(
                Query(f'heatsoak_probe_card_temperature_celsius{{{_ONE}, probe="matmul"}}', "{{dtype}} hottest, °C"),
                Query(f'heatsoak_probe_card_sm_clock_hertz{{{_ONE}, probe="matmul"}} / 1e6', "{{dtype}} SM clock, MHz"),
            ),
            empty=_UNPROBED,
            unit="none",
            custom=_SPEED,
            overrides=(
                {
                    "matcher": matching("MHz$"),
                    "properties": [{"id": "custom.axisPlacement", "value": "right"}],
                },
            ),
        ),
        Panel(
            kind="timeseries",
            title="Errors over its life",
            description=(
                "ECC errors counted by the card itself, remapped rows and retired pages: they stay with the card."
            ),
            queries=(
                Query(_placed('heatsoak_gpu_ecc_errors_total{counter="aggregate"}'), "ECC {{type}}"),
                Query(_placed("heatsoak_gpu_remapped_rows_total"), "remapped rows, {{cause}}"),
                Query(_placed("heatsoak_gpu_retired_pages_total"), "retired pages, {{cause}}"),
            ),
            empty="This card counts no memory errors: consumer cards have no ECC.",
            unit="none",
            low=0,
            custom=COUNT_AXIS,
        ),
        Panel(
            kind="timeseries",
            title="Temperature and power",
            description="The hottest and hungriest minute in each interval.",
            queries=(
                Query(_placed("max_over_time(heatsoak_gpu_temperature_celsius[$__rate_interval])"), "°C"),
                Query(_placed("max_over_time(heatsoak_gpu_power_watts[$__rate_interval])"), "W"),
            ),
            empty="No reading in this time.",
            unit="none",
            overrides=(
                {
                    "matcher": {"id": "byName", "options": "W"},
                    "properties": [{"id": "custom.axisPlacement", "value": "right"}],
                },
            ),
        ),
        Panel(
            kind="timeseries",
            title="Held down by heat",
            description="Share of the time in which heat held the busy card's clocks down.",
            queries=(Query(f"card:heatsoak_thermal_throttle:ratio_rate5m{{{_ONE}}}", "by heat"),),
            empty="The driver counts no throttling for this card.",
            unit="percentunit",
            low=0,
            high=1,
        ),
    )


def _events() -> tuple[Annotation, ...]:
    return (
        Annotation(
            "Verdicts",
            f"heatsoak_card_state_since_timestamp_seconds{{{_ONE}}} * 1000",
            "The card's state changed",
            "{{instance}} GPU {{gpu}}",
            ORANGE,
        ),
        Annotation(
            "Findings",
            f'heatsoak_verdict_since_timestamp_seconds{{{_ONE}, state!="ok"}} * 1000',
            "{{rule}}: {{state}}",
            "{{cause}}",
            RED,
        ),
        Annotation(
            "XID errors",
            f"heatsoak_gpu_xid_last_timestamp_seconds{{{_ONE}}} * 1000",
            "XID error",
            "{{instance}} GPU {{gpu}}",
            "purple",
        ),
    )


CARD_BOARD: Final = Dashboard(
    uid="heatsoak-card",
    title="heatsoak: card history",
    description="One card through time, by its serial or UUID: speed, drift, verdicts, errors, events.",
    variables=_variables(),
    rows=(
        Row("Who", (_who(),)),
        Row("Verdicts", _states()),
        Row("Speed", _speed()),
        Row("Circumstances", _circumstances()),
    ),
    annotations=_events(),
    start="now-30d",
)
