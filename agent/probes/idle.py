"""How long each card has been at rest, and how much memory it uses then: learned from the snapshots."""

from collections.abc import Callable, Collection
from types import MappingProxyType
from typing import Final

import msgspec

from agent.model.snapshot import Card, Snapshot
from agent.probes.tenants import DESKTOP_UTILIZATION, tenants

UNSEEN_S: Final = 5.0
"""A gap in the readings longer than this breaks a card's rest: nobody knows what happened in it."""
MOST_IDLE_BYTES: Final = 1024.0 * 1024 * 1024
"""No card at rest is believed to need more: what was in use at the start may be a tenant we cannot see."""


class Rest(msgspec.Struct, frozen=True):
    """What is known of one card's rest."""

    seen_s: float
    """When the card was last read, on the monotonic clock."""
    quiet_since_s: float | None = None
    """Since when its utilisation is 0; None while it is not, or is unknown."""
    idle_bytes: float | None = None
    """Least memory seen in use while no tenant was on it; None before the first such moment."""
    driver: str = ""


def observe_card(before: Rest | None, card: Card, now_s: float, *, tenant: bool, ours: bool) -> Rest:
    """Return what is known after one more reading.

    ``tenant`` is whether a process of somebody else is on the card, ``ours`` whether our own probe is or
    was a moment ago: its work is no sign of a tenant and breaks no rest.
    """
    if before is None or before.driver != card.identity.driver:
        before = Rest(now_s, None, None, card.identity.driver)
    elif now_s - before.seen_s > UNSEEN_S:
        before = msgspec.structs.replace(before, quiet_since_s=None)
    if ours and not tenant:
        return msgspec.structs.replace(before, seen_s=now_s)
    utilization = card.values.get("utilization_ratio")
    quiet_since_s = None
    if utilization == 0 and not tenant:
        quiet_since_s = now_s if before.quiet_since_s is None else before.quiet_since_s
    idle_bytes = before.idle_bytes
    used_bytes = card.values.get("memory_used_bytes")
    if used_bytes is not None and not tenant:
        idle_bytes = min(used_bytes, MOST_IDLE_BYTES, MOST_IDLE_BYTES if idle_bytes is None else idle_bytes)
    return Rest(now_s, quiet_since_s, idle_bytes, before.driver)


class IdleTracker:
    """Keeps the rest of every card; one reading a snapshot."""

    def __init__(self, sessions: Callable[[], Collection[int]], *, trust_pids: bool) -> None:
        """Take who our own children are, and whether process ids can be told apart at all."""
        self._sessions = sessions
        self._trust_pids = trust_pids
        self._rests: MappingProxyType[str, Rest] = MappingProxyType({})

    def observe(self, snapshot: Snapshot, ours: Collection[str]) -> None:
        """Take in one snapshot; ``ours`` are the UUIDs of cards our own probe is on, or was a moment ago.

        Cards the snapshot lacks are forgotten.
        """
        rests = {}
        for card in snapshot.cards:
            uuid = card.identity.uuid
            rests[uuid] = observe_card(
                self._rests.get(uuid),
                card,
                snapshot.taken_monotonic_s,
                tenant=bool(self.tenants(card)),
                ours=uuid in ours,
            )
        self._rests = MappingProxyType(rests)

    def rest(self, uuid: str) -> Rest | None:
        """Return what is known of a card's rest; None where it was never seen."""
        return self._rests.get(uuid)

    def tenants(self, card: Card) -> tuple[int, ...]:
        """Return the ids of processes on the card that are not ours; empty where ids mean nothing."""
        if not self._trust_pids or not card.processes:
            return ()
        at_rest = card.values.get("utilization_ratio", 1.0) < DESKTOP_UTILIZATION
        found = tenants(card.processes, sessions=self._sessions(), desktop_at_rest=at_rest)
        return tuple(process.pid for process in found)
