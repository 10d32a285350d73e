"""What several dashboards share: the choice of cards, PromQL that finds them, colours, tables, links."""

from collections.abc import Mapping
from typing import Final

from agent.model.vocabulary import CARD_STATES, WORKLOAD_STATES, CardState, WorkloadState
from grafana.model import Json, Step, Variable, Word

CARD: Final = "cluster, job, instance, gpu, uuid"
NODE: Final = "cluster, job, instance"
CARD_LEGEND: Final = "{{node}} GPU {{gpu}}"
IDLE_REASONS: Final = "gpu_idle|applications_clocks|display_clocks"

CARDS: Final = 'cluster=~"$cluster", rack=~"$rack", node=~"$node", name=~"$model", gpu=~"$card"'
"""Selects cards by what is chosen at the top."""
NODES: Final = 'cluster=~"$cluster", rack=~"$rack", node=~"$node"'

QUIET: Final = "#73808c"
"""Of a tile that says nothing new."""
SHARE_AXIS: Final = {"axisSoftMin": 0.9, "axisSoftMax": 1.02}
"""Keeps a per mille from looking like a cliff."""
COUNT_AXIS: Final = {"axisSoftMax": 1}
GREEN, ORANGE, RED, GREY, BLUE, PURPLE = "green", "orange", "red", "#8e8e8e", "blue", "purple"
STATE_COLORS: Final[Mapping[CardState, str]] = {
    "ok": GREEN,
    "unknown": GREY,
    "throttled": ORANGE,
    "degraded": "#e8590c",
    "faulty": RED,
    "lost": "dark-red",
    "maintenance": BLUE,
}
STATES_BEST_FIRST: Final[tuple[CardState, ...]] = ("ok", *reversed(CARD_STATES[1:-1]), "maintenance")
STATE_WORDS: Final = tuple(Word(at, state, STATE_COLORS[state]) for at, state in enumerate(STATES_BEST_FIRST))
_WORKLOAD_COLORS: Final[Mapping[WorkloadState, str]] = {
    "ok": GREEN,
    "input_bound": ORANGE,
    "underused": "yellow",
    "none": GREY,
}
FINDING_COLORS: Final[Mapping[str, str]] = {
    **{str(state): color for state, color in STATE_COLORS.items()},
    "input_bound": "yellow",
    "underused": "yellow",
    "ok": "transparent",
}
"""A finding of state ok only informs."""
WORKLOAD_WORDS: Final = tuple(Word(at, state, _WORKLOAD_COLORS[state]) for at, state in enumerate(WORKLOAD_STATES))
REASON_WORDS: Final = (
    Word(0, "free", GREEN),
    Word(1, "idle or set so", GREY),
    Word(2, "power cap", "light-blue"),
    Word(3, "sync boost", "yellow"),
    Word(4, "heat (driver)", ORANGE),
    Word(5, "hardware slowdown", "dark-red"),
    Word(6, "heat (hardware)", RED),
    Word(7, "power brake", PURPLE),
)
_REASON_RANKS: Final = (
    (IDLE_REASONS, 1),
    ("sw_power_cap", 2),
    ("sync_boost", 3),
    ("sw_thermal", 4),
    ("hw_slowdown", 5),
    ("hw_thermal", 6),
    ("hw_power_brake", 7),
)


def _ranked(metric: str, label: str, ranks: tuple[tuple[str, int], ...]) -> str:
    return " or ".join(f'{metric}{{{label}=~"{value}"}} * {rank}' for value, rank in ranks)


def _places(states: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    return tuple((state, at) for at, state in enumerate(states))


STATE_NUMBER: Final = f"sum by ({CARD}) ({_ranked('heatsoak_card_state', 'state', _places(STATES_BEST_FIRST))})"
"""One number a card: the place of its state in ``STATES_BEST_FIRST``."""
WORKLOAD_NUMBER: Final = f"sum by ({CARD}) ({_ranked('heatsoak_workload_state', 'state', _places(WORKLOAD_STATES))})"
"""One number a card: the place of its workload's state in ``WORKLOAD_STATES``."""
REASON_NUMBER: Final = f"max by ({CARD}) ({_ranked('heatsoak_gpu_throttle_active', 'reason', _REASON_RANKS)})"
"""One number a card: the weightiest reason that holds its clocks down, as in ``REASON_WORDS``."""

SCORE_STEPS: Final = (Step(None, RED), Step(0.95, ORANGE), Step(0.97, GREEN))
HEAT_STEPS: Final = (Step(None, "dark-blue"), Step(45, "green"), Step(70, "yellow"), Step(80, ORANGE), Step(86, RED))
SHARE_STEPS: Final = (Step(None, GREEN), Step(0.02, "yellow"), Step(0.1, ORANGE), Step(0.3, RED))

_CARDS_UNDER: Final = 'heatsoak_gpu_info{cluster=~"$cluster", rack=~"$rack"'


def variables(*, one_node: bool = False) -> tuple[Variable, ...]:
    """Return the usual choices; ``one_node`` where a dashboard is about a single node."""
    return (
        Variable("cluster", "Cluster", "label_values(heatsoak_node_info, cluster)"),
        Variable("rack", "Rack", 'label_values(heatsoak_node_info{cluster=~"$cluster"}, rack)'),
        Variable(
            "node",
            "Node",
            'label_values(heatsoak_node_info{cluster=~"$cluster", rack=~"$rack"}, node)',
            every=not one_node,
        ),
        Variable("model", "Model", f'label_values({_CARDS_UNDER}, node=~"$node"}}, name)'),
        Variable("card", "Card", f'label_values({_CARDS_UNDER}, node=~"$node", name=~"$model"}}, gpu)'),
    )


def of_cards(expr: str, further: str = "") -> str:
    """Return ``expr``, which has a series or more a card, for the chosen cards, with their node and model."""
    left = "node, name" + (f", {further}" if further else "")
    return f"{expr} * on ({CARD}) group_left ({left}) heatsoak_gpu_info{{{CARDS}}}"


def of_nodes(expr: str) -> str:
    """Return ``expr``, which has a series or more a node, for the chosen nodes, with the node's name."""
    return f"{expr} * on ({NODE}) group_left (node) heatsoak_node_info{{{NODES}}}"


def columns(names: Mapping[str, str]) -> tuple[Json, ...]:
    """Return what makes a table of these labels in this order under these headings; all others are left out."""
    return (
        {"id": "filterFieldsByName", "options": {"include": {"names": list(names)}}},
        {
            "id": "organize",
            "options": {
                "excludeByName": {},
                "indexByName": {name: at for at, name in enumerate(names)},
                "renameByName": dict(names),
            },
        },
    )


def colored(
    column: str, steps: tuple[Step, ...] = (), words: tuple[Word, ...] = (), texts: Mapping[str, str] | None = None
) -> Json:
    """Return what gives a table's column a coloured background: by value, by word for a value, or by text."""
    properties: list[Json] = [
        {"id": "custom.cellOptions", "value": {"type": "color-background", "mode": "basic"}},
    ]
    if steps:
        shown = [{"value": step.value, "color": step.color} for step in steps]
        properties.append({"id": "thresholds", "value": {"mode": "absolute", "steps": shown}})
    named = {f"{word.value:g}": (word.text, word.color) for word in words}
    named |= {text: (text, color) for text, color in (texts or {}).items()}
    if named:
        options = {key: {"text": text, "color": color, "index": 0} for key, (text, color) in named.items()}
        properties.append({"id": "mappings", "value": [{"type": "value", "options": options}]})
    return {"matcher": {"id": "byName", "options": column}, "properties": properties}


def in_unit(column: str, unit: str, decimals: int = 0) -> Json:
    """Return what shows a table's column in a unit."""
    properties: list[Json] = [{"id": "unit", "value": unit}, {"id": "decimals", "value": decimals}]
    return {"matcher": {"id": "byName", "options": column}, "properties": properties}


def wide(column: str, pixels: int) -> Json:
    """Return what gives a table's column a width."""
    return {
        "matcher": {"id": "byName", "options": column},
        "properties": [{"id": "custom.width", "value": pixels}],
    }


def matching(pattern: str) -> Json:
    """Return what finds series by a regular expression; without slashes Grafana would take it for the whole name."""
    return {"id": "byRegexp", "options": f"/{pattern}/"}


def dashed(pattern: str, color: str = RED) -> Json:
    """Return what draws the series whose name matches as a dashed line: a limit, not a reading."""
    return {
        "matcher": matching(pattern),
        "properties": [
            {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}},
            {"id": "custom.fillOpacity", "value": 0},
            {"id": "color", "value": {"mode": "fixed", "fixedColor": color}},
        ],
    }


def fixed(name: str, color: str) -> Json:
    """Return what gives the series of that name a colour."""
    return {
        "matcher": {"id": "byName", "options": name},
        "properties": [{"id": "color", "value": {"mode": "fixed", "fixedColor": color}}],
    }


def link(title: str, uid: str, **choices: str) -> Json:
    """Return a data link to another dashboard with these variables set; the time stays."""
    chosen = "&".join(f"var-{name}={value}" for name, value in choices.items())
    return {"title": title, "url": f"/d/{uid}?{chosen}&${{__url_time_range}}", "targetBlank": False}
