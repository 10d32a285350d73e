"""A clock that moves only when it is told to."""

import threading


class FakeClock:
    """Monotonic and wall time in one hand; waiting passes time at once."""

    def __init__(self, monotonic_s: float = 1000.0, wall_s: float = 1_700_000_000.0) -> None:
        """Start at the given times."""
        self._monotonic_s = monotonic_s
        self._wall_s = wall_s

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass on both clocks."""
        self._monotonic_s += seconds
        self._wall_s += seconds

    def step_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or back where negative, as an operator or NTP would."""
        self._wall_s += seconds

    def monotonic_s(self) -> float:
        """Return the monotonic time."""
        return self._monotonic_s

    def wall_s(self) -> float:
        """Return the wall time."""
        return self._wall_s

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Pass ``timeout_s`` unless ``event`` is set; return whether it is."""
        if not event.is_set():
            self.advance(max(0.0, timeout_s))
        return event.is_set()
