"""Pages made from the rule files: the table of alerts, the tables of names."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

RULES: Final = Path(__file__).parent.parent / "deploy" / "prometheus"
_ALERTS_HEAD: Final = """# Alerts

Made by `python -m grafana.build` from [heatsoak-alerts.yaml](../deploy/prometheus/heatsoak-alerts.yaml); the series
that they read are in [heatsoak-recording.yaml](../deploy/prometheus/heatsoak-recording.yaml). Load both; see
[prometheus.yaml](../deploy/prometheus/prometheus.yaml).

The agent judges, confirms and folds: one fault, one finding. A rule therefore waits only as long as a restart, a
driver upgrade or a start of the job takes, and compares what an agent cannot see, the rack and the fleet. Every
alert has a test in which it fires and one in which it stays silent although somebody might expect it
(`deploy/prometheus/tests`): idle clocks, the power cap, one sample, a restart, a driver upgrade, maintenance, a
node without a GPU.

| alert | severity | after | what it says, as in its test | what to do next |
|---|---|---|---|---|
"""
_ALERTS_TAIL: Final = """
Severity `critical` wants somebody now, `warning` wants a ticket, `none` goes to nobody and only inhibits.

**Where runbooks are.** `runbook_url` is a path in this repository. To have whole addresses, publish `docs/` and
name its place in an external label of Prometheus that ends in a slash; the rules put it before the path:

```yaml
global:
  external_labels:
    runbooks: https://wiki.example.org/heatsoak/
```

**One fault, one alarm.** [alertmanager.yaml](../deploy/prometheus/alertmanager.yaml) groups by fault, rack and
node, and inhibits: a hot rack its hot cards; a driver that does not answer everything about its cards; a lost or
faulty card what is less; a broken probe environment and a slow host the doubts about single cards.

**Maintenance.** `heatsoak pause` puts cards into the state `maintenance`, which comes before every other: their
alerts resolve by themselves, and CardInMaintenance inhibits those that are still pending. For a whole node or rack,
silence it:

```
amtool silence add --duration=2h --comment="firmware" node=gpu-r07-n12
amtool silence add --duration=2h --comment="cooling" rack=R07
```

**Jobs and clusters.** AgentDown selects scrape jobs whose name contains `heatsoak`. Where one Prometheus watches
several clusters, give every target a label `cluster`; rules and dashboards keep clusters apart by it.
"""
_MIGRATION_HEAD: Final = """# Coming from another exporter

Made by `python -m grafana.build` from the rule files. Load one of them into Prometheus beside
[heatsoak-recording.yaml](../deploy/prometheus/heatsoak-recording.yaml), and dashboards and alerts made for the
other exporter keep working; where one of these series is missing, the card does not offer it. The tables read both
ways: left to right when you rewrite a dashboard, right to left when you look for what a name here was called.
"""
_PLACES: Final = (
    (
        "migration-dcgm.yaml",
        "dcgm-exporter",
        (
            "Labels `UUID`, `device`, `modelName` and `Hostname` are there too; `DCGM_FI_PROF_GR_ENGINE_ACTIVE` is "
            "near. Not served: violation times (here `heatsoak_gpu_throttle_seconds_total`), the mask of throttle "
            "reasons (`heatsoak_gpu_throttle_active`), NVLink bandwidth (`heatsoak_gpu_nvlink_transmit_bytes_total`)."
        ),
    ),
    (
        "migration-nvidia-smi.yaml",
        "nvidia_gpu_exporter",
        "`uuid` stands without its `GPU-`, as there.",
    ),
)


def rules(name: str) -> Iterator[dict[str, Any]]:
    """Yield every rule of a file in deploy/prometheus, in its order."""
    document = yaml.safe_load((RULES / name).read_text(encoding="utf-8"))
    for group in document["groups"]:
        yield from group["rules"]


def examples() -> dict[str, str]:
    """Return what each alert says in the first test in which it fires."""
    found: dict[str, str] = {}
    for path in sorted((RULES / "tests").glob("*.yaml")):
        for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            for case in test["alert_rule_test"]:
                for alert in case["exp_alerts"]:
                    found.setdefault(case["alertname"], alert["exp_annotations"]["summary"])
    return found


def alerts_page() -> str:
    """Return docs/alerts.md."""
    said = examples()
    lines = []
    for rule in rules("heatsoak-alerts.yaml"):
        name, waits = rule["alert"], rule.get("for", "at once")
        cells = (f"[{name}](runbooks/{name}.md)", rule["labels"]["severity"], waits, said[name])
        lines.append("| " + " | ".join((*cells, rule["annotations"]["action"])) + " |\n")
    return _ALERTS_HEAD + "".join(lines) + _ALERTS_TAIL


def migration_page() -> str:
    """Return docs/migration.md."""
    parts = [_MIGRATION_HEAD]
    for name, exporter, remark in _PLACES:
        parts.append(
            f"\n## {exporter}\n\n[{name}](../deploy/prometheus/{name}). {remark}\n\n| there | here |\n|---|---|\n"
        )
        parts += [
            f"| `{rule['record']}` | `{_ours(rule['expr'])}` |\n" for rule in rules(name) if ":" not in rule["record"]
        ]
    return "".join(parts)


def _ours(expr: str) -> str:
    """Return the series and its scaling, without the labels that are joined or rewritten."""
    found = re.search(r"heatsoak_\w+(\{[^}]*\})?( [*/] [\d.e]+)?", expr)
    return found.group(0) if found else expr.strip()
