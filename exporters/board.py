"""Where the agent puts each snapshot, and where everything that is served takes the last one from."""

from collections import deque
from collections.abc import Mapping
from typing import Final

from agent.model.metrics import Sample
from agent.model.snapshot import Snapshot

_RATE_SPAN_S: Final = 15.0
_RATE_STEP_S: Final = 0.5
"""Samples closer together than this are not kept: what is held does not grow with the rate of ticks."""

SampleKey = tuple[str, tuple[str, ...]]


class Board:
    """Holds the latest snapshot, and host samples of a quarter of a minute before for rates.

    ``publish`` is called by the loop, the rest by any thread: what is read was put there by one assignment.
    """

    def __init__(self) -> None:
        self._latest: Snapshot | None = None
        self._past: deque[tuple[float, tuple[Sample, ...]]] = deque()

    def publish(self, snapshot: Snapshot) -> None:
        """Make ``snapshot`` the latest."""
        if not self._past or snapshot.taken_monotonic_s - self._past[-1][0] >= _RATE_STEP_S:
            self._past.append((snapshot.taken_monotonic_s, snapshot.host))
        while len(self._past) > 2 and self._past[1][0] <= snapshot.taken_monotonic_s - _RATE_SPAN_S:
            self._past.popleft()
        self._latest = snapshot

    def latest(self) -> Snapshot | None:
        """Return the latest snapshot; None before the first."""
        return self._latest

    def host_rates(self) -> Mapping[SampleKey, float]:
        """Return by how much each host sample rose per second lately; without what fell or is new."""
        snapshot = self._latest
        if snapshot is None:
            return {}
        taken_s, before = self._past[0]
        span_s = snapshot.taken_monotonic_s - taken_s
        if span_s <= 0:
            return {}
        old = {(sample.name, sample.labels): sample.value for sample in before}
        rates: dict[SampleKey, float] = {}
        for sample in snapshot.host:
            key = (sample.name, sample.labels)
            if key in old and sample.value >= old[key]:
                rates[key] = (sample.value - old[key]) / span_s
        return rates
