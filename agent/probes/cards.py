"""The cards as the last tick saw them, and whether each may be probed now."""

from collections.abc import Callable, Collection

from agent.config.settings import ProbeSettings
from agent.model.snapshot import Card, Snapshot
from agent.probes.idle import IdleTracker
from agent.probes.policy import Facts, why_not
from agent.probes.tenants import pids_are_the_hosts


class Cards:
    """What is known of each card; ``observe`` feeds it, any thread may ask."""

    def __init__(self, settings: ProbeSettings, sessions: Callable[[], Collection[int]]) -> None:
        """Take the settings, and who our own children are."""
        self.settings = settings
        self.pids_trusted = pids_are_the_hosts(settings.trust_pids)
        self._idle = IdleTracker(sessions, trust_pids=self.pids_trusted)
        self._snapshot: Snapshot | None = None

    def observe(self, snapshot: Snapshot, ours: Collection[str]) -> None:
        """Take in one tick; ``ours`` are the cards that our own probe is on, or was a moment ago."""
        self._idle.observe(snapshot, ours)
        self._snapshot = snapshot

    def all(self) -> tuple[Card, ...]:
        """Return every card of the last tick."""
        return self._snapshot.cards if self._snapshot else ()

    def get(self, uuid: str) -> Card | None:
        """Return one card of the last tick; None where it had none of that name."""
        return next((card for card in self.all() if card.identity.uuid == uuid), None)

    def tenants(self, card: Card) -> tuple[int, ...]:
        """Return the ids of processes on a card that are not ours; empty where ids mean nothing."""
        return self._idle.tenants(card)

    def why_not(
        self,
        uuid: str,
        now_s: float,
        *,
        exclusive: bool = False,
        paused: Collection[str] = (),
        allocated: Collection[str] | None = (),
        busy_s: float = 0.0,
        budget_s: float = float("inf"),
    ) -> str | None:
        """Return the reason why a card is not to be probed now; None where it may be.

        ``exclusive`` says that the card was given to us, so that process ids need not be trusted; see
        ``Facts`` for the rest.
        """
        card = self.get(uuid)
        facts = Facts(
            now_s=now_s,
            taken_s=self._snapshot.taken_monotonic_s if self._snapshot else None,
            card=card,
            rest=self._idle.rest(uuid),
            tenants=self.tenants(card) if card else (),
            pids_trusted=self.pids_trusted or exclusive,
            paused=paused,
            allocated=allocated,
            busy_s=busy_s,
            budget_s=budget_s,
        )
        return why_not(facts, self.settings)
