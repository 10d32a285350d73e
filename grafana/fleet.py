"""The fleet: how many cards are well, which are not and why, and whether it is the rack's air."""

from typing import Final

from grafana.model import Dashboard, Panel, Query, Row, Step, Word
from grafana.parts import (
    CARD,
    CARD_LEGEND,
    CARDS,
    COUNT_AXIS,
    GREEN,
    HEAT_STEPS,
    NODE,
    NODES,
    ORANGE,
    QUIET,
    RED,
    SCORE_STEPS,
    SHARE_AXIS,
    SHARE_STEPS,
    STATE_COLORS,
    STATES_BEST_FIRST,
    colored,
    columns,
    fixed,
    in_unit,
    link,
    of_cards,
    of_nodes,
    variables,
    wide,
)

_SLOTS: Final = 'cluster=~"$cluster", rack=~"$rack", node=~"$node"'
_RANK_WORDS: Final = (
    Word(6, "lost", STATE_COLORS["lost"]),
    Word(5, "faulty", STATE_COLORS["faulty"]),
    Word(4, "degraded", STATE_COLORS["degraded"]),
    Word(3, "throttled", STATE_COLORS["throttled"]),
    Word(2, "input-bound", "yellow"),
    Word(1, "unknown", STATE_COLORS["unknown"]),
)
_TO_NODE: Final = link("This node", "heatsoak-node", node="${__data.fields.Node}")
_TO_CARD: Final = link("This card's history", "heatsoak-card", uuid="${__data.fields.UUID}")
_NO_PLACE: Final = "No node with a reading; [node] rack and position in the configuration give it its place."


def _counts() -> Panel:
    return Panel(
        kind="stat",
        title="Cards by state",
        description=(
            "How many of the chosen cards are in each state; a card is in one state only, the worst that holds."
        ),
        queries=tuple(
            Query("sum(" + of_cards(f'heatsoak_card_state{{state="{state}"}}') + ")", state)
            for state in STATES_BEST_FIRST
        ),
        empty="none",
        width=24,
        height=4,
        overrides=tuple(_count_color(state, STATE_COLORS[state]) for state in STATES_BEST_FIRST),
        options={"orientation": "vertical"},
    )


def _count_color(state: str, color: str) -> dict[str, object]:
    """Return colours that stay quiet at 0, so that the eye finds what is not."""
    steps = [{"value": None, "color": QUIET}, {"value": 1, "color": color}]
    properties = [{"id": "thresholds", "value": {"mode": "absolute", "steps": steps}}]
    return {"matcher": {"id": "byName", "options": state}, "properties": properties}


def _worst() -> Panel:
    shown = {
        "Value": "State",
        "node": "Node",
        "gpu": "GPU",
        "cause": "Cause",
        "rack": "Rack",
        "position": "Position",
        "name": "Model",
        "serial": "Serial",
        "rule": "Rule",
        "uuid": "UUID",
    }
    return Panel(
        kind="table",
        title="The ten worst",
        description=(
            "Findings that hold now, the worst first, with their cause. Unknown is listed where a human is wanted; "
            "a card that is still learning its reference is not. Click for the node or for the card's history."
        ),
        queries=(Query(f"topk(10, card:heatsoak_problem:rank{{{CARDS}}})", table=True),),
        empty="Nothing is wrong with any of the chosen cards.",
        width=16,
        height=9,
        transformations=(*columns(shown), {"id": "sortBy", "options": {"sort": [{"field": "State", "desc": True}]}}),
        overrides=(
            colored("State", words=_RANK_WORDS),
            wide("State", 110),
            wide("GPU", 60),
            wide("Cause", 170),
            wide("Rack", 80),
            wide("Position", 80),
        ),
        custom={"minWidth": 60},
        links=(_TO_NODE, _TO_CARD),
    )


def _nodes() -> Panel:
    expr = (
        f'(heatsoak_node_state{{state!="ok"}} == 1) * on ({NODE}) group_left (node, rack) heatsoak_node_info{{{NODES}}}'
    )
    down = '(up{job=~".*heatsoak.*", cluster=~"$cluster"} == 0) + 1'
    return Panel(
        kind="table",
        title="Nodes in trouble",
        description="Nodes whose state is not ok, and agents that Prometheus does not reach.",
        queries=(Query(expr, table=True), Query(down, table=True)),
        empty="Every node is well and every agent answers.",
        width=8,
        height=9,
        transformations=(
            {"id": "merge", "options": {}},
            *columns({"node": "Node", "instance": "Agent", "rack": "Rack", "state": "State (empty: not reached)"}),
        ),
        links=(_TO_NODE,),
    )


def _map(title: str, series: str, text: str, unit: str, steps: tuple[Step, ...], decimals: int) -> Panel:
    matrix = {"columnField": "rack", "rowField": "slot", "valueField": "Value", "emptyValue": "null"}
    return Panel(
        kind="table",
        title=title,
        description=(
            f"{text} Columns are racks, rows positions. Neighbours alike in all three maps share one cause: air."
        ),
        queries=(Query(f"{series}{{{_SLOTS}}}", table=True),),
        empty=_NO_PLACE,
        unit=unit,
        decimals=decimals,
        width=8,
        height=10,
        steps=steps,
        custom={"align": "center", "minWidth": 50, "cellOptions": {"type": "color-background", "mode": "basic"}},
        transformations=(
            {"id": "sortBy", "options": {"sort": [{"field": "slot", "desc": True}]}},
            {"id": "groupingToMatrix", "options": matrix},
        ),
        overrides=(
            {
                "matcher": {"id": "byName", "options": "slot\\rack"},
                "properties": [{"id": "custom.cellOptions", "value": {"type": "auto"}}],
            },
        ),
    )


def _maps() -> tuple[Panel, ...]:
    return (
        _map(
            "Hottest card",
            "slot:heatsoak_temperature_celsius:max",
            "Temperature of the hottest card in each place.",
            "celsius",
            HEAT_STEPS,
            0,
        ),
        _map(
            "Held down by heat",
            "slot:heatsoak_thermal_throttle:max_ratio_rate5m",
            "Share of the last 5 minutes in which heat held a busy card's clocks down, the worst card in each place.",
            "percentunit",
            SHARE_STEPS,
            0,
        ),
        _map(
            "Lowest probe score",
            "slot:heatsoak_probe_score:min_ratio",
            "Probe score of the slowest card in each place; 100 % is the median of all cards of its model.",
            "percentunit",
            SCORE_STEPS,
            1,
        ),
    )


def _scores() -> tuple[Panel, ...]:
    by_model = "min by (name, probe, dtype)"
    score = f"card:heatsoak_probe_score:ratio{{{CARDS}}}"
    return (
        Panel(
            kind="bargauge",
            title="Slowest cards by probe score",
            description=(
                "Judged probes against the median of all cards of the model under the same driver, TensorFlow and "
                "method: 100 % is the median, the bar starts at 85 %."
            ),
            queries=(Query(f"bottomk(10, {score})", "{{node}} GPU {{gpu}} {{probe}} {{dtype}}"),),
            empty="No judged probe yet: cards are probed when idle, an hour apart.",
            unit="percentunit",
            decimals=1,
            low=0.85,
            high=1.02,
            height=9,
            steps=SCORE_STEPS,
        ),
        Panel(
            kind="timeseries",
            title="Slowest card of each model against the fleet's median",
            description=(
                "The lowest probe score of each model and probe through time; a step down is a card that got slow."
            ),
            queries=(Query(f"{by_model} ({score})", "{{name}} {{probe}} {{dtype}}"),),
            empty="No judged probe yet: cards are probed when idle, an hour apart.",
            unit="percentunit",
            decimals=1,
            height=9,
            steps=SCORE_STEPS,
            custom={"lineWidth": 2, "spanNulls": True, **SHARE_AXIS},
        ),
    )


def _work() -> tuple[Panel, ...]:
    duty = f"avg by ({CARD}) (avg_over_time(heatsoak_gpu_utilization_ratio[10m]))"
    finding = 'heatsoak_verdict_active{rule="input_bound", state="input_bound", mode="on"}'
    starving = of_cards(f"{finding} * on ({CARD}) group_left () {duty}")
    shown = {"node": "Node", "gpu": "GPU", "cause": "Cause", "Value": "Duty"}
    age = f"(card:heatsoak_probe_age:seconds{{{CARDS}}} > 7 * 86400)"
    return (
        Panel(
            kind="table",
            title="Input-bound cards",
            description=(
                "Cards whose job is starved of input, with the cause found in its process or control group, and the "
                "share of the last 10 minutes in which they worked. The card is fine."
            ),
            queries=(Query(f"sort({starving})", table=True),),
            empty="No card is starved of input.",
            transformations=columns(shown),
            overrides=(in_unit("Duty", "percentunit"),),
            links=(link("Its pipeline", "heatsoak-pipeline", node="${__data.fields.Node}"), _TO_NODE),
        ),
        Panel(
            kind="table",
            title="Not probed for a week",
            description="Cards without a good probe for seven days: nobody knows whether they are slow.",
            queries=(Query(f"sort_desc({age})", table=True),),
            empty="Every card that was ever probed had a good probe within a week.",
            transformations=columns(
                {"node": "Node", "gpu": "GPU", "name": "Model", "Value": "Last good probe, ago", "uuid": "UUID"}
            ),
            overrides=(in_unit("Last good probe, ago", "s"),),
            links=(_TO_NODE, _TO_CARD),
        ),
    )


def _trends() -> tuple[Panel, ...]:
    by_state = of_cards('heatsoak_card_state{state!="ok"}')
    return (
        Panel(
            kind="timeseries",
            title="Cards not ok through time",
            description="How many of the chosen cards were in each state other than ok.",
            queries=(Query(f"sum by (state) ({by_state})", "{{state}}"),),
            empty="No card with a verdict in this time.",
            low=0,
            decimals=0,
            width=8,
            custom={**COUNT_AXIS, "fillOpacity": 70, "lineWidth": 0, "stacking": {"mode": "normal", "group": "A"}},
            overrides=tuple(fixed(state, STATE_COLORS[state]) for state in STATES_BEST_FIRST),
        ),
        Panel(
            kind="timeseries",
            title="GPU power by rack",
            description="Power of all chosen cards, summed by rack; cards that report no power are missing from it.",
            queries=(Query(f"sum by (rack) ({of_cards('heatsoak_gpu_power_watts', 'rack')})", "rack {{rack}}"),),
            empty="None of the chosen cards reports its power.",
            unit="watt",
            low=0,
            width=8,
        ),
        Panel(
            kind="timeseries",
            title="Probe time",
            description=(
                "Share of the chosen cards' time that probes took, a day's mean; the dashed line is the budget."
            ),
            queries=(
                Query(of_cards("rate(heatsoak_probe_busy_seconds_total[1d])"), CARD_LEGEND),
                Query(f"max({of_nodes('heatsoak_probe_duty_budget_ratio')})", "budget"),
            ),
            empty="No probe has run on the chosen cards; see why under heatsoak_probe_runs_total.",
            unit="percentunit",
            width=8,
            low=0,
            overrides=(fixed("budget", RED),),
        ),
    )


def _agents() -> tuple[Panel, ...]:
    failing = of_nodes("(heatsoak_collector_success == 0)")
    return (
        Panel(
            kind="table",
            title="Collectors that fail",
            description="Parts of an agent that could not read what they read: their series are missing, not 0.",
            queries=(Query(failing, table=True),),
            empty="Every collector of every chosen node works.",
            transformations=columns({"node": "Node", "collector": "Collector"}),
            height=6,
        ),
        Panel(
            kind="timeseries",
            title="Runs of probes by result",
            description=(
                "Probe runs an hour by status and, where it is not ok, reason: skipped means that a card was in use."
            ),
            queries=(
                Query(
                    f"sum by (status, reason) ({of_nodes('increase(heatsoak_probe_runs_total[1h])')}) > 0",
                    "{{status}} {{reason}}",
                ),
            ),
            empty="No probe was due in this time.",
            height=6,
            low=0,
            overrides=(fixed("ok ", GREEN), fixed("ok", GREEN)),
            steps=(Step(None, ORANGE),),
        ),
    )


FLEET: Final = Dashboard(
    uid="heatsoak-fleet",
    title="heatsoak: fleet",
    description="Which cards are slow, hot, faulty or starved, and whether their neighbours are too.",
    variables=variables(),
    rows=(
        Row("Now", (_counts(), _worst(), _nodes())),
        Row("Racks: the three maps side by side", _maps()),
        Row("Speed", _scores()),
        Row("Work", _work()),
        Row("Trends", (*_trends(), *_agents())),
    ),
)
