"""What every test shares: nothing is skipped unseen, and what this machine cannot run is listed."""

import os
from collections.abc import Generator

import pytest

_NEEDS = {"tf29": ("HEATSOAK_TF29_PYTHON", "no TensorFlow 2.9 was found or named (it needs Python 3.8 to 3.10)")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests whose foreign interpreter this machine lacks; the summary lists them."""
    absent = {marker for marker, (variable, _) in _NEEDS.items() if not os.environ.get(variable)}
    left_out = [item for item in items if any(item.get_closest_marker(marker) for marker in absent)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure where HEATSOAK_NO_SKIPS is set."""
    report = yield
    if os.environ.get("HEATSOAK_NO_SKIPS") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped where nothing may be skipped: {report.longrepr}"
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was not run on this machine, with the reason."""
    for marker, (variable, why) in _NEEDS.items():
        if not os.environ.get(variable):
            terminalreporter.write_line(f"not run: tests marked {marker}: {why}")
