"""The dashboards as TypeScript that only compiles if each key, type and word is one that Grafana's schema knows.

Grafana's own types describe enums; JSON holds their text, so that `Json` maps the one to the other.
"""

import json
from collections.abc import Iterator
from typing import Final

from grafana.build import BOARDS
from grafana.model import Kind, dashboard_json

_PACKAGE: Final = "@grafana/schema/dist/esm/raw/composable"
_HEAD: Final = f"""
import type {{ AnnotationQuery, Dashboard }} from '@grafana/schema';
import type * as stat from '{_PACKAGE}/stat/panelcfg/x/StatPanelCfg_types.gen';
import type * as timeseries from '{_PACKAGE}/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import type * as timeline from '{_PACKAGE}/statetimeline/panelcfg/x/StateTimelinePanelCfg_types.gen';
import type * as table from '{_PACKAGE}/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as bargauge from '{_PACKAGE}/bargauge/panelcfg/x/BarGaugePanelCfg_types.gen';
"""
_TYPES: Final = """
type Json<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T
  : T extends (infer U)[] ? Json<U>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;
type Asked = { refId: string; expr: string; interval: string };
type Event = Omit<Json<AnnotationQuery>, 'target'>
  & { target: Asked; titleFormat: string; textFormat: string; useValueForTime: 'on' };  // Prometheus's own
type Board = Omit<Json<Dashboard>, 'annotations'> & { annotations: { list: Event[] } };
"""
_OPTIONS: Final[dict[Kind, str]] = {
    "stat": "stat.Options",
    "timeseries": "timeseries.Options",
    "state-timeline": "timeline.Options",
    "table": "table.Options",
    "bargauge": "bargauge.Options",
}
_FIELDS: Final[dict[Kind, str]] = {
    "timeseries": "timeseries.FieldConfig",
    "state-timeline": "timeline.FieldConfig",
    "table": "table.FieldConfig",
}


def typescript() -> str:
    """Return the module: every dashboard, and every panel's options and field options as their own kind has them."""
    return _HEAD + _TYPES + "\n".join(_constants()) + "\n"


def _constants() -> Iterator[str]:
    for number, board in enumerate(BOARDS):
        document = dashboard_json(board)
        yield f"export const board{number}: Board = {json.dumps(document)};"
        for panel in document["panels"]:
            kind = panel["type"]
            name = f"{number}_{panel['id']}"
            if kind in _OPTIONS:
                yield f"export const options{name}: Partial<Json<{_OPTIONS[kind]}>> = {json.dumps(panel['options'])};"
            if kind in _FIELDS:
                custom = json.dumps(panel["fieldConfig"]["defaults"]["custom"])
                yield f"export const fields{name}: Partial<Json<{_FIELDS[kind]}>> = {custom};"
