"""What a dashboard is made of, and how it becomes Grafana's JSON (schema 39: Grafana 10 and later)."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

Kind = Literal["stat", "timeseries", "state-timeline", "table", "bargauge"]
Json = dict[str, Any]
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_SCHEMA_VERSION: Final = 39
_DATASOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
_COLUMNS: Final = 24


class Query(msgspec.Struct, frozen=True):
    """One PromQL expression; ``legend`` names its series, ``table`` asks for the latest values as rows."""

    expr: str
    legend: str = ""
    table: bool = False


class Step(msgspec.Struct, frozen=True):
    """A colour from a value on; None is the lowest step."""

    value: float | None
    color: str


class Word(msgspec.Struct, frozen=True):
    """What stands in place of a number, and its colour."""

    value: float
    text: str
    color: str


class Panel(msgspec.Struct, frozen=True):
    """One panel. ``empty`` says why nothing may be there: a card or a node need not have every reading."""

    kind: Kind
    title: str
    description: str
    queries: tuple[Query, ...]
    empty: str
    unit: str = ""
    """Grafana's name of the unit; where empty, short numbers, and in tables the text as it is."""
    width: int = 12
    height: int = 8
    decimals: int | None = None
    low: float | None = None
    high: float | None = None
    steps: tuple[Step, ...] = (Step(None, "green"),)
    words: tuple[Word, ...] = ()
    overrides: tuple[Json, ...] = ()
    transformations: tuple[Json, ...] = ()
    custom: Mapping[str, Any] = _NOTHING
    """Field options of the panel's own kind, over the defaults here."""
    options: Mapping[str, Any] = _NOTHING
    """Options of the panel's own kind, over the defaults here."""
    links: tuple[Json, ...] = ()
    """Data links: where a click on a value leads."""


class Row(msgspec.Struct, frozen=True):
    """A titled row of panels, laid out from left to right and wrapped."""

    title: str
    panels: tuple[Panel, ...]


class Variable(msgspec.Struct, frozen=True):
    """A choice at the top of a dashboard, filled from a label of a series."""

    name: str
    label: str
    query: str
    every: bool = True
    """Whether "All" may be chosen, as several values may."""


class Annotation(msgspec.Struct, frozen=True):
    """Events drawn into every panel: at the time that the value of each series is, in milliseconds."""

    name: str
    expr: str
    title: str
    text: str
    color: str


class Dashboard(msgspec.Struct, frozen=True):
    """One dashboard."""

    uid: str
    title: str
    description: str
    variables: tuple[Variable, ...]
    rows: tuple[Row, ...]
    annotations: tuple[Annotation, ...] = ()
    start: str = "now-6h"


def dashboard_json(board: Dashboard) -> Json:
    """Return the document that Grafana imports; ids follow the order of the panels."""
    return {
        "uid": board.uid,
        "title": board.title,
        "description": board.description,
        "tags": ["heatsoak"],
        "schemaVersion": _SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "timezone": "browser",
        "time": {"from": board.start, "to": "now"},
        "annotations": {"list": [_annotation(one) for one in board.annotations]},
        "links": [_other_dashboards()],
        "templating": {"list": [_datasource(), *(_variable(one) for one in board.variables)]},
        "panels": list(_panels(board.rows)),
    }


def _other_dashboards() -> Json:
    return {
        "title": "heatsoak",
        "type": "dashboards",
        "tags": ["heatsoak"],
        "asDropdown": False,
        "icon": "external link",
        "tooltip": "The other heatsoak dashboards, with the same choice of time and cards",
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "url": "",
    }


def _datasource() -> Json:
    return {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "hide": 0}


def _variable(one: Variable) -> Json:
    found: Json = {
        "type": "query",
        "name": one.name,
        "label": one.label,
        "datasource": dict(_DATASOURCE),
        "query": {"query": one.query, "refId": one.name},
        "refresh": 2,
        "sort": 7,
        "hide": 0,
        "includeAll": one.every,
        "multi": one.every,
        "regex": "",
        "options": [],
    }
    if one.every:
        found["allValue"] = ".*"
        found["current"] = {"selected": True, "text": "All", "value": "$__all"}
    return found


def _annotation(one: Annotation) -> Json:
    return {
        "name": one.name,
        "datasource": dict(_DATASOURCE),
        "enable": True,
        "hide": False,
        "iconColor": one.color,
        "target": {"refId": "Anno", "expr": one.expr, "interval": "60s"},
        "titleFormat": one.title,
        "textFormat": one.text,
        "useValueForTime": "on",
    }


def _panels(rows: tuple[Row, ...]) -> Iterator[Json]:
    number, top = 1, 0
    for row in rows:
        place = {"x": 0, "y": top, "w": _COLUMNS, "h": 1}
        yield {"id": number, "type": "row", "title": row.title, "collapsed": False, "gridPos": place, "panels": []}
        number, top, left, line = number + 1, top + 1, 0, 0
        for panel in row.panels:
            if left + panel.width > _COLUMNS:
                top, left, line = top + line, 0, 0
            yield _panel(panel, number, {"x": left, "y": top, "w": panel.width, "h": panel.height})
            number, left, line = number + 1, left + panel.width, max(line, panel.height)
        top += line


def _panel(panel: Panel, number: int, place: Json) -> Json:
    found: Json = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": dict(_DATASOURCE),
        "gridPos": place,
        "targets": [_target(query, chr(ord("A") + at), panel.kind) for at, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": list(panel.overrides)},
        "options": {**_OPTIONS[panel.kind], **panel.options},
    }
    if panel.transformations:
        found["transformations"] = list(panel.transformations)
    return found


def _target(query: Query, ref: str, kind: Kind) -> Json:
    instant = query.table or kind in ("stat", "bargauge")
    return {
        "refId": ref,
        "datasource": dict(_DATASOURCE),
        "editorMode": "code",
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "format": "table" if query.table else "time_series",
        "instant": instant,
        "range": not instant,
    }


def _defaults(panel: Panel) -> Json:
    found: Json = {
        "unit": panel.unit or ("string" if panel.kind == "table" else "short"),
        "noValue": panel.empty,
        "color": {"mode": _COLOR_MODES[panel.kind]},
        "thresholds": {
            "mode": "absolute",
            "steps": [{"value": step.value, "color": step.color} for step in panel.steps],
        },
        "mappings": [_mapping(panel.words)] if panel.words else [],
        "links": list(panel.links),
        "custom": {**_CUSTOM[panel.kind], **panel.custom},
    }
    for key, value in (("decimals", panel.decimals), ("min", panel.low), ("max", panel.high)):
        if value is not None:
            found[key] = value
    return found


def _mapping(words: tuple[Word, ...]) -> Json:
    options = {
        f"{word.value:g}": {"text": word.text, "color": word.color, "index": at} for at, word in enumerate(words)
    }
    return {"type": "value", "options": options}


_COLOR_MODES: Final[Mapping[Kind, str]] = {
    "stat": "thresholds",
    "timeseries": "palette-classic",
    "state-timeline": "thresholds",
    "table": "thresholds",
    "bargauge": "thresholds",
}
_CUSTOM: Final[Mapping[Kind, Json]] = {
    "stat": {},
    "bargauge": {},
    "timeseries": {
        "drawStyle": "line",
        "lineWidth": 1,
        "fillOpacity": 0,
        "showPoints": "never",
        "spanNulls": False,
        "lineInterpolation": "linear",
        "axisPlacement": "auto",
        "stacking": {"mode": "none", "group": "A"},
    },
    "state-timeline": {"lineWidth": 0, "fillOpacity": 80},
    "table": {"align": "auto", "cellOptions": {"type": "auto"}, "inspect": False},
}
_REDUCE: Final = {"calcs": ["lastNotNull"], "fields": "", "values": False}
_LIST_LEGEND: Final = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
_OPTIONS: Final[Mapping[Kind, Json]] = {
    "stat": {
        "reduceOptions": _REDUCE,
        "orientation": "auto",
        "colorMode": "background",
        "graphMode": "none",
        "justifyMode": "auto",
        "textMode": "value_and_name",
        "wideLayout": True,
        "showPercentChange": False,
        "percentChangeColorMode": "standard",
    },
    "bargauge": {
        "reduceOptions": _REDUCE,
        "orientation": "horizontal",
        "displayMode": "basic",
        "valueMode": "color",
        "namePlacement": "left",
        "showUnfilled": True,
        "sizing": "auto",
        "minVizWidth": 8,
        "minVizHeight": 16,
        "maxVizHeight": 300,
        "legend": {**_LIST_LEGEND, "showLegend": False},
    },
    "timeseries": {"legend": _LIST_LEGEND, "tooltip": {"mode": "multi", "sort": "desc"}},
    "state-timeline": {
        "showValue": "never",
        "rowHeight": 0.85,
        "mergeValues": True,
        "alignValue": "left",
        "perPage": 20,
        "legend": _LIST_LEGEND,
        "tooltip": {"mode": "single", "sort": "none"},
    },
    "table": {"showHeader": True, "cellHeight": "sm"},
}
