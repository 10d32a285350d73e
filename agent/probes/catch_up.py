"""Which cards wait for a run that was skipped because somebody used them, and when they may be tried again."""

from collections.abc import Iterable
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
    """How long the last pause was, and when it ends, on the monotonic clock."""

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

    def attempt(self, uuid: str, now_s: float) -> None:
        """Note that a run of a waiting card is asked for: until it is over, or for the next pause, it is not due."""
        wait = self._waits.get(uuid)
        if wait is not None:  # else a run that was under way has settled it
            pause_s = min(self._interval_s, 2 * wait.pause_s)
            self._waits[uuid] = _Wait(pause_s, now_s + pause_s)

    def learn(self, uuid: str, results: Iterable[ProbeResult], now_s: float) -> None:
        """Take what became of a run: one that a card's use prevented leaves the card waiting, any other settles it."""
        reasons = {result.reason for result in results if result.status in ("skipped", "aborted")}
        if not reasons & IN_USE:
            self._waits.pop(uuid, None)
        elif uuid not in self._waits:
            pause_s = SHARE_OF_INTERVAL * self._interval_s
            self._waits[uuid] = _Wait(pause_s, now_s + pause_s)
