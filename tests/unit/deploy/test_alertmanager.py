"""The example for Alertmanager: who hears of what, and which alert keeps which others quiet."""

import subprocess

import pytest

from tests.support.names import RULES, rules

CONFIG = str(RULES / "alertmanager.yaml")


def amtool(*arguments: str) -> str:
    """Run amtool; return what it says, fail where it complains."""
    done = subprocess.run(["amtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_the_configuration_is_right() -> None:
    """Routes, receivers, matchers."""
    amtool("check-config", CONFIG)


@pytest.mark.parametrize("rule", rules("heatsoak-alerts.yaml"), ids=lambda rule: str(rule["alert"]))
def test_each_alert_goes_to_whom_it_concerns(rule: dict[str, dict[str, str]]) -> None:
    """Critical wakes somebody, the starving job's owner is told, the rest is a ticket or goes to nobody."""
    severity = rule["labels"]["severity"]
    expected = {"critical": "on-call", "warning": "tickets", "none": "nobody"}[severity]
    if str(rule["alert"]) == "WorkloadInputBound":
        expected = "job-owners"
    said = amtool(
        "config", "routes", "test", f"--config.file={CONFIG}", f"alertname={rule['alert']}", f"severity={severity}"
    )
    assert said == expected
