"""Which cards wait for a run that was skipped because somebody used them, and when they may be tried again."""

from collections.abc import Iterable
from math import inf
from typing import Final

import msgspec

from agent.model.probe import ProbeResult

IN_USE: Final = frozenset(
    {"foreign_process", "busy", "memory_in_use", "allocated", "no_telemetry", "maintenance", "tenant_arrived"}
)
"""Reasons that pass: the card is somebody's, or nobody knows, for now."""
SHARE_OF_INTERVAL: Final = 1.0 / 60.0
"""The first pause, as a share of the schedule's interval: a minute of an hour."""


class _Wait(msgspec.Struct, frozen=True):
    """How long the pause is, and when it ends, on the monotonic clock; infinite while a run is asked for."""

    pause_s: float
    until_s: float


class CatchUp:
    """Waits for each card apart; who calls it runs the probe once the card is idle and ``due``.

    Each attempt that came to nothing doubles the pause, up to the schedule's interval: a card with short gaps
    between its tenants is not raced for.
    """

    def __init__(self, interval_s: float) -> None:
        """Start with no card waiting; ``interval_s`` is the schedule's."""
        self._interval_s = interval_s
        self._waits: dict[str, _Wait] = {}

    def due(self, now_s: float) -> tuple[str, ...]:
        """Return the UUIDs of the cards that wait for an idle moment and whose pause is over."""
        return tuple(uuid for uuid, wait in list(self._waits.items()) if now_s >= wait.until_s)

    def attempt(self, uuid: str) -> None:
        """Note that a run of a waiting card is asked for: the card is not due again before it is over."""
        wait = self._waits.get(uuid)
        if wait is not None:  # else a run that was under way has settled it
            self._waits[uuid] = _Wait(min(self._interval_s, 2 * wait.pause_s), inf)

    def learn(self, uuid: str, results: Iterable[ProbeResult], now_s: float) -> None:
        """Take what became of a run: one that a card's use prevented leaves the card waiting, any other settles it."""
        reasons = {result.reason for result in results if result.status in ("skipped", "aborted")}
        if not reasons & IN_USE:
            self._waits.pop(uuid, None)
            return
        wait = self._waits.get(uuid, _Wait(SHARE_OF_INTERVAL * self._interval_s, inf))
        if wait.until_s == inf:
            self._waits[uuid] = _Wait(wait.pause_s, now_s + wait.pause_s)
