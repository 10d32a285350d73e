"""Rules and alerts: well-formed, tested both ways, and somebody hears of every verdict that wants a human."""

import ast
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from agent.model.vocabulary import CARD_STATES, NODE_STATES, WORKLOAD_STATES
from agent.verdicts.registry import CARD_RULES, NODE_RULES
from agent.verdicts.view import CardRule, NodeRule
from tests.support.names import RULES, names_in, rules, scraped_names

ROOT = RULES.parents[1]
ALERTS = rules("heatsoak-alerts.yaml")
RECORDINGS = rules("heatsoak-recording.yaml")
CASES = sorted((RULES / "tests").glob("*.yaml"))
NEEDS_NOBODY = {
    "ok": "informs only",
    "underused": "the card and its host are fine, and nothing found in the job explains it",
    "none": "nobody works on the card",
}
NOT_UNKNOWN_FOR_LONG = {"fell_together": "host_slow says it for the node"}


def promtool(*arguments: str) -> None:
    """Run promtool; fail with what it says."""
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False, cwd=RULES)
    assert done.returncode == 0, done.stdout + done.stderr


def states_of(rule_module: str) -> set[str]:
    """Return the states that a rule's module names in its conclusions."""
    path = ROOT / (rule_module.replace(".", "/") + ".py")
    states = {*CARD_STATES, *NODE_STATES, *WORKLOAD_STATES}
    found: set[str] = set()
    for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Conclusion":
            given = [keyword.value for keyword in call.keywords if keyword.arg == "state"]
            for value in (node for one in given for node in ast.walk(one)):
                if isinstance(value, ast.Constant) and value.value in states:
                    found.add(str(value.value))
    return found


def test_every_rule_passes_promtools_lint() -> None:
    """All files, the migration's too, without a warning."""
    promtool(
        "check",
        "rules",
        "--lint=all",
        "--lint-fatal",
        *(path.name for path in RULES.glob("*.yaml") if "groups:" in path.read_text()),
    )


def test_the_example_configuration_of_prometheus_is_right() -> None:
    """It names rule files that are there."""
    promtool("check", "config", "prometheus.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_alerts_fire_and_stay_silent_as_they_should(case: Path) -> None:
    """The files beside the rules say when each alert fires, with which words, and when it does not."""
    promtool("test", "rules", str(case))


def test_every_alert_has_a_firing_and_a_silent_case() -> None:
    """An alert without both is not tested."""
    fires: set[str] = set()
    silent: set[str] = set()
    for path in CASES:
        for test in yaml.safe_load(path.read_text(encoding="utf-8"))["tests"]:
            for case in test["alert_rule_test"]:
                (fires if case["exp_alerts"] else silent).add(case["alertname"])
    names = {rule["alert"] for rule in ALERTS}
    assert fires == names
    assert silent == names


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_what_is_wrong_what_to_do_and_where_to_read_on(rule: dict[str, dict[str, str]]) -> None:
    """One sentence with numbers from the data, one with the next action, a runbook that is there."""
    said = rule["annotations"]
    assert set(said) == {"summary", "action", "runbook_url"}
    assert "{{" in said["summary"]
    assert said["summary"].rstrip().endswith(".")
    assert said["action"].endswith(".")
    assert said["runbook_url"] == f"{{{{ $externalLabels.runbooks }}}}docs/runbooks/{rule['alert']}.md"
    assert (ROOT / "docs" / "runbooks" / f"{rule['alert']}.md").is_file()
    assert rule["labels"]["severity"] in ("critical", "warning", "none")


def test_no_runbook_is_about_an_alert_that_is_gone() -> None:
    """One page an alert, no more."""
    pages = {path.stem for path in (ROOT / "docs" / "runbooks").glob("*.md")} - {"README"}
    assert pages == {rule["alert"] for rule in ALERTS}


def test_rules_read_what_agents_serve_and_rules_record() -> None:
    """A name that nobody makes would keep an alert silent for ever."""
    known = scraped_names() | {rule["record"] for rule in RECORDINGS} | {"up"}
    for name in ("heatsoak-recording.yaml", "heatsoak-alerts.yaml", "migration-dcgm.yaml", "migration-nvidia-smi.yaml"):
        own = {rule.get("record", "") for rule in rules(name)}
        for rule in rules(name):
            texts = [
                rule["expr"],
                *re.findall(r'printf "([^"]+)"', str(rule.get("annotations", {}).get("summary", ""))),
            ]
            read = frozenset().union(*(names_in(text) for text in texts))
            assert read, rule
            assert read <= known | own, f"{rule.get('alert', rule.get('record'))}: {sorted(read - known - own)}"


def test_every_verdict_that_wants_a_human_has_an_alert() -> None:
    """Whatever state a rule can name, an alert selects it; a new rule or state fails here first."""
    selected = " ".join(str(rule["expr"]) for rule in ALERTS)
    unknown_rules = re.search(r'rule=~"([^"]+)", state="unknown"', selected)
    assert unknown_rules
    heard = set(unknown_rules.group(1).split("|"))
    every: tuple[CardRule | NodeRule, ...] = (*CARD_RULES, *NODE_RULES)
    for rule in every:
        states = states_of(rule.judge.__module__)
        assert states, f"{rule.name}: no state found in {rule.judge.__module__}"
        for state in states - NEEDS_NOBODY.keys():
            if state == "unknown":
                assert rule.name in heard | NOT_UNKNOWN_FOR_LONG.keys(), rule.name
            elif state == "throttled":
                assert re.search(rf'rule=~?"[^"]*\b{rule.name}\b', selected + str(RECORDINGS)), rule.name
            else:
                assert f'state="{state}"' in selected, f"{rule.name}: nobody hears of {state}"


def test_every_state_that_wants_a_human_has_an_alert() -> None:
    """The vocabularies are closed: each of their words is selected or needs nobody, with its reason."""
    selected = " ".join(str(rule["expr"]) for rule in ALERTS) + str(RECORDINGS)
    for state in {*CARD_STATES, *NODE_STATES, *WORKLOAD_STATES} - NEEDS_NOBODY.keys():
        assert f'state="{state}"' in selected, state


def test_migration_names_have_their_own_labels() -> None:
    """Dashboards for dcgm-exporter select by UUID, modelName and Hostname."""
    for rule in rules("migration-dcgm.yaml"):
        if rule["record"].startswith("DCGM_"):
            assert "group_left (UUID, device, modelName, Hostname)" in rule["expr"]
    assert all("$1" in rule["expr"] for rule in rules("migration-nvidia-smi.yaml"))
