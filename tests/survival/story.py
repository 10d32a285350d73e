"""What the cases share: a quick agent, and a scenario that a test may change while the agent runs."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from tests.support.agent import AgentProcess, alive, eventually
from tests.support.fakenvml import write_scenario
from tests.support.process import descendants

FAST: Final = {"HEATSOAK_AGENT_TICK_S": "0.05"}
STALE_S: Final = 3.0
"""After so long without a reading a card's fast values are no longer served."""
NO_ACCESS: Final = "card all * = UNKNOWN"


STOP_S: Final = 5.0
"""How long the agent may take to end on a machine that has a core to spare."""


class Story:
    """A scenario file: ``base`` of the repository and lines that change."""

    def __init__(self, directory: Path, base: str, *lines: str) -> None:
        """Write the first version."""
        self.path = directory / "story.scenario"
        self._base = base
        self.tell(*lines)

    def tell(self, *lines: str) -> None:
        """Go on as these lines say, in place of those before."""
        write_scenario(self.path, [f"include {self._base}", *lines])


def await_cards(agent: AgentProcess, count: int = 1) -> None:
    """Wait until so many cards give readings."""
    name = "heatsoak_gpu_temperature_celsius"
    eventually(lambda: len(agent.metrics().get(name, {})) == count, f"{count} cards with readings")


def await_no_readings(agent: AgentProcess) -> None:
    """Wait until no card gives readings."""
    eventually(lambda: not agent.metrics().get("heatsoak_gpu_temperature_celsius"), "the end of all readings")


def await_ticks(agent: AgentProcess, count: int) -> None:
    """Wait for so many more ticks."""
    before = agent.value("heatsoak_ticks_total") or 0.0
    eventually(lambda: (agent.value("heatsoak_ticks_total") or 0.0) >= before + count, f"{count} more ticks", 90.0)


def ends_soon(agent: AgentProcess, number: signal.Signals = signal.SIGTERM) -> None:
    """Send the signal: the agent ends with 0, in time, and nothing that it started is left."""
    below = descendants(agent.pid)
    slack_s = 20.0 * _interpreter_start_s()
    begun_s = time.monotonic()
    assert agent.stop(number) == 0
    assert time.monotonic() - begun_s < STOP_S + slack_s
    eventually(lambda: not any(alive(pid) for pid in below), "the end of all descendants", 2.0 + slack_s)


def _interpreter_start_s() -> float:
    """Return how long a bare interpreter takes to start and end: hundredths of a second where nothing else runs."""
    begun_s = time.monotonic()
    subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
    return time.monotonic() - begun_s


def complaints(agent: AgentProcess, *levels: str) -> list[str]:
    """Return the events logged as warnings or errors, or at the levels named.

    Verdicts are left out, and late ticks: this machine may be busy.
    """
    wanted = levels or ("warning", "error", "critical")
    told = [entry["event"] for entry in agent.log if entry.get("level") in wanted]
    return [event for event in told if not event.startswith("verdict_") and event != "tick_overran"]


def check_metrics(page: str) -> None:
    """Fail where promtool finds anything to complain of in a metrics page."""
    command = ["promtool", "check", "metrics"]
    checked = subprocess.run(command, input=page, capture_output=True, text=True, timeout=30, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
