"""Asks a fresh process that sees a scenario."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.fakenvml import fake_env

_ROOT = Path(__file__).parents[3]
_COMMAND = [sys.executable, "-m", "tests.unit.fakenvml.child"]
Json = Any
"""What a line of JSON holds."""
DEADLINE_S = 30.0
CARD = "cards 1\n"


def error(name: str) -> dict[str, str]:
    """Return how a child writes the NVML error of this name."""
    return {"error": name}


class Child:
    """A process that answers one expression at a time; ``init`` is what its initialisation said."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.init = self._answer()

    def ask(self, expression: str) -> Json:
        """Return the answer to an expression (see child.py)."""
        self.tell(expression)
        return self._answer()

    def tell(self, expression: str) -> None:
        """Send an expression without waiting for its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(expression + "\n")
        self.process.stdin.flush()

    def _answer(self) -> Json:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"the child ended with {self.process.wait(DEADLINE_S)}")
        return json.loads(line)


@contextmanager
def child(scenario: str | Path, *, at_s: float | None = None, speed: float | None = None) -> Iterator[Child]:
    """Start a child; it begins in second ``at_s`` of the scenario where that is given."""
    epoch = None if at_s is None else time.monotonic() - at_s / (speed or 1.0)
    with subprocess.Popen(
        _COMMAND,
        cwd=_ROOT,
        env=fake_env(scenario, epoch=epoch, speed=speed),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield Child(process)
        finally:
            process.kill()


def answers(scenario: str | Path, *expressions: str, at_s: float | None = None) -> list[Json]:
    """Return what a fresh process answers to expressions."""
    with child(scenario, at_s=at_s) as process:
        return [process.ask(expression) for expression in expressions]


def complaint(scenario: Path) -> tuple[Json, str]:
    """Return what initialisation answers under a scenario, and what the library writes to standard error."""
    done = subprocess.run(
        _COMMAND,
        cwd=_ROOT,
        env=fake_env(scenario),
        input="",
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[0]), done.stderr


def blocked_signals(pid: int) -> int:
    """Return the mask of signals that the first thread of a process blocks."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:")), 16)
