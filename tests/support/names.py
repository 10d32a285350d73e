"""Every name that a scrape can hold, taken from the code that makes them."""

import re
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

from agent.host.collect import HOST_METRICS
from agent.model.probe import PROBE_KINDS
from agent.model.quantities import QUANTITIES
from agent.probes.counts import METRICS as PROBE_METRICS
from exporters.prometheus import MetricsPage
from tests.support import snapshots

RULES = Path(__file__).parents[2] / "deploy" / "prometheus"
_METRIC = re.compile(r"(?<![\w:.\"])(?:\w+:heatsoak_\w+:\w+|heatsoak_\w+|up)(?=[{\s()\[,]|$)")


def rule_groups(name: str) -> list[dict[str, Any]]:
    """Return the groups of a rule file in deploy/prometheus."""
    found: list[dict[str, Any]] = yaml.safe_load((RULES / name).read_text(encoding="utf-8"))["groups"]
    return found


def rules(name: str) -> list[dict[str, Any]]:
    """Return every rule of a file in deploy/prometheus, in its order."""
    return [rule for group in rule_groups(name) for rule in group["rules"]]


def scraped_names() -> frozenset[str]:
    """Return every series name that an agent can serve."""
    page = MetricsPage(version="1.2.3", definitions=snapshots.HOST_METRICS)
    pages = [page.render(make()).decode() for make in snapshots.ALL.values()]
    shown = {sample.name for text in pages for each in text_string_to_metric_families(text) for sample in each.samples}
    defined = {metric.name for metric in (*HOST_METRICS, *PROBE_METRICS)}
    kinds = {kind.metric for kind in PROBE_KINDS.values()}
    return frozenset(shown | defined | kinds | {row.metric for row in QUANTITIES})


def names_in(expression: str) -> frozenset[str]:
    """Return the metrics that an expression reads."""
    return frozenset(_METRIC.findall(expression))
