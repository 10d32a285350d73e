"""The one door to time: monotonic for every interval, wall time for labels only."""

import threading
import time
from typing import Protocol


class Clock(Protocol):
    """Tells time and passes it; tests put a fake in its place."""

    def monotonic_s(self) -> float:
        """Return seconds on a clock that never steps and that child processes share."""

    def wall_s(self) -> float:
        """Return seconds since the Unix epoch; fit for labels, never for intervals."""

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Wait until ``event`` is set or ``timeout_s`` seconds passed; return whether it is set."""


class SystemClock:
    """The machine's own clocks."""

    def monotonic_s(self) -> float:
        """Return CLOCK_MONOTONIC in seconds."""
        return time.monotonic()

    def wall_s(self) -> float:
        """Return CLOCK_REALTIME in seconds."""
        return time.time()

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Wait for ``event``, at most ``timeout_s`` seconds (negative counts as 0)."""
        return event.wait(max(0.0, timeout_s))
