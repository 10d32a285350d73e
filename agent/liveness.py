"""Whether the agent still does its work: what /livez answers from."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent.clock import Clock
from agent.model.snapshot import Snapshot

_LEAST_STANDSTILL_S: Final = 10.0
_STANDSTILL_TICKS: Final = 10
_ACCESS_GRACE_S: Final = 120.0
_NO_FAULT: Final = ("", "STARTING", "PAUSED", "DISABLED")


class Liveness:
    """Watches the loop; in a container also whether access to the cards was lost for good.

    A container that loses its device files, or whose driver was upgraded outside, does not get well by
    itself: only a new one does. Under a service manager of the host the agent keeps trying instead.
    """

    def __init__(self, tick_s: float, clock: Clock, *, contained: bool) -> None:
        """Begin to watch; the loop counts as moving now."""
        self._clock = clock
        self._contained = contained
        self._bound_s = max(_LEAST_STANDSTILL_S, _STANDSTILL_TICKS * tick_s)
        self._moved_s = clock.monotonic_s()
        self._good_before = False
        self._down_since_s: float | None = None

    def moved(self, snapshot: Snapshot) -> None:
        """Note that the loop made ``snapshot``."""
        self._moved_s = self._clock.monotonic_s()
        if snapshot.nvml.error in _NO_FAULT:
            self._good_before |= snapshot.nvml.up
            self._down_since_s = None
        elif self._down_since_s is None:
            self._down_since_s = self._moved_s

    def trouble(self) -> str:
        """Return why this process should be replaced; empty while it should not."""
        now_s = self._clock.monotonic_s()
        if now_s - self._moved_s > self._bound_s:
            return f"the loop has not moved for {now_s - self._moved_s:.0f} s"
        down_since_s = self._down_since_s
        if (
            self._contained
            and self._good_before
            and down_since_s is not None
            and now_s - down_since_s > _ACCESS_GRACE_S
        ):
            return f"access to the cards was lost {now_s - down_since_s:.0f} s ago; a new container gets it back"
        return ""


def is_contained(environ: Mapping[str, str], root: Path = Path("/")) -> bool:
    """Return whether this process runs in a container that an orchestrator can replace."""
    named = environ.get("KUBERNETES_SERVICE_HOST") or environ.get("container")
    return bool(named) or any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv"))
