"""Case 25: what is shipped holds what this case asks of it; that it works is tested where it is installed."""

import configparser
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.support.agent import ROOT, eventually, running_agent
from tests.support.stub_interpreter import StubInterpreter
from tests.survival.story import FAST
from tests.survival.test_probes import four_at_rest

SYSTEMD = ROOT / "deploy" / "systemd" / "heatsoak.service"
RULES = sorted((ROOT / "deploy" / "prometheus").glob("*.yaml"))
OURS = re.compile(r"(?<![\w:])heatsoak_\w+(?![\w:])")
"""A metric of ours; a name with a colon is recorded by a rule."""
KUBERNETES = ROOT / "deploy" / "kubernetes"


class TestCase25Shipped:
    """The unit, the DaemonSet and the rules."""

    def test_unit_runs_as_its_own_user_and_is_never_locked_out(self) -> None:
        """Devices stay visible, restarts have no limit, a wrong configuration is not tried for ever."""
        unit = _unit(SYSTEMD)
        service = unit["Service"]
        assert service.get("DynamicUser") == "yes" or service.get("User", "root") != "root"
        assert service.get("PrivateDevices", "no") in ("no", "false")
        assert service["Restart"] in ("always", "on-failure")
        assert "2" in service["RestartPreventExitStatus"].split()
        assert unit["Unit"].get("StartLimitIntervalSec", service.get("StartLimitIntervalSec")) == "0"

    def test_daemon_set_asks_for_no_card_and_no_privilege(self) -> None:
        """A node without a card runs it too, and a node with cards loses none to it."""
        found = list(_containers(KUBERNETES))
        assert found, f"no container in any DaemonSet below {KUBERNETES}"
        for container in found:
            assert "nvidia.com/gpu" not in str(container.get("resources", {}))
            assert not container.get("securityContext", {}).get("privileged", False)

    def test_every_metric_a_rule_names_is_served(self, tmp_path: Path) -> None:
        """By an agent with a probed card, by one without a driver, or as METRICS.md says of cards."""
        served = set(re.findall(r"\bheatsoak_\w+", (ROOT / "docs" / "METRICS.md").read_text()))
        stub = StubInterpreter(tmp_path, "third_slow")
        environ = {**FAST, **stub.settings(), "HEATSOAK_VERDICTS_DEGRADED_CONFIRM_MEASUREMENTS": "1"}
        with running_agent(tmp_path, scenario=four_at_rest(tmp_path).path, environ=environ) as agent:
            eventually(lambda: agent.series("heatsoak_verdict_evidence"), "a judged probe")
            served |= set(agent.metrics())
        with running_agent(tmp_path, scenario="nodriver", environ=FAST) as agent:
            eventually(lambda: agent.series("heatsoak_nvml_error"), "the error")
            served |= set(agent.metrics())
        named = {name for path in RULES for text in _expressions(path) for name in OURS.findall(text)}
        assert len(named) > 20
        assert named - served == set()

    def test_rules_hold_before_promtool(self) -> None:
        """Syntax and lint."""
        files = [str(path) for path in RULES if list(_expressions(path))]
        assert files
        checked = subprocess.run(["promtool", "check", "rules", *files], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def _unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # systemd's keys are case-sensitive
    parser.read(path)
    return parser


def _containers(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the containers of every DaemonSet among plain manifests, templates left out."""
    for path in sorted(folder.rglob("*.yaml")):
        text = path.read_text()
        if "{{" in text:
            continue
        for document in yaml.safe_load_all(text):
            if isinstance(document, dict) and document.get("kind") == "DaemonSet":
                yield from document["spec"]["template"]["spec"]["containers"]


def _expressions(path: Path) -> Iterator[str]:
    document = yaml.safe_load(path.read_text()) or {}
    for group in document.get("groups", ()):
        yield from (str(rule["expr"]) for rule in group["rules"])
