"""One reader child's life as the agent follows it: what it was asked, what it is silent about, since when."""

from collections.abc import Iterable
from typing import Final

from agent.config.settings import NvmlSettings
from agent.model.vocabulary import TIER_PERIOD_S, Tier
from agent.nvml.protocol import At, CardFound, Done, Event, Hello, Read, Ready, Start, Take, Values

ATTACH_DEADLINES: Final = 4
"""Opening a card at the start may take this many read deadlines: the driver may have to wake it first."""
HEALTHY_AFTER_S: Final = 60.0
DUE_SLACK_S: Final = 0.25
"""A tier is due this much early, so that a tick's jitter does not put it off by a whole tick."""


class Session:
    """What passed between the agent and one child; it sends nothing itself."""

    def __init__(self, skipped: Iterable[int], now_s: float) -> None:
        """Begin with the child that leaves out the cards ``skipped``."""
        self.skipped = frozenset(skipped)
        self.ready = False
        self.count = 0
        self.good_since_s: float | None = None
        """When it first answered a whole sweep; None before."""
        self.at: int | None = None
        """The card whose driver call is under way."""
        self.silent_from_s = now_s
        """When it last said something, or was asked after saying all it had to say."""
        self.sweep: int | None = None
        self.burst: int | None = None
        self.retrying: int | None = None
        self.swept_s = now_s
        self.refused: list[str] = []
        """Error names of the cards of which not one call succeeded in this sweep."""
        self.answered = 0
        self.unopened: dict[int, str] = {}
        """The cards that could not be opened at the start, and why each was lost before; empty where it was not."""
        self._asked_s: dict[Tier, float] = {}
        self._next_id = 0

    @property
    def waiting(self) -> bool:
        """Whether an answer is owed."""
        return not self.ready or (self.sweep, self.burst, self.retrying) != (None, None, None)

    @property
    def owes_burst(self) -> bool:
        """Whether a burst is unanswered."""
        return self.burst is not None

    def deadline_s(self, settings: NvmlSettings) -> float:
        """Return when its silence counts as a hang."""
        if self.ready:
            allowed_s = settings.read_deadline_s
        elif self.at is None:
            allowed_s = settings.init_deadline_s
        else:
            allowed_s = min(settings.init_deadline_s, ATTACH_DEADLINES * settings.read_deadline_s)
        return self.silent_from_s + allowed_s

    def start(self, settings: NvmlSettings) -> Start:
        """Return the first command."""
        return Start(skip=tuple(sorted(self.skipped)), off=settings.off, library=settings.library)

    def ask_sweep(self, now_s: float) -> Read:
        """Return the command that reads what is due of all cards."""
        due = tuple(tier for tier, period_s in TIER_PERIOD_S.items() if self._due(tier, period_s, now_s))
        self._asked_s.update(dict.fromkeys(due, now_s))
        self._await(now_s)
        self.sweep = self._new_id()
        self.swept_s = now_s
        self.refused = []
        self.answered = 0
        return Read(self.sweep, due)

    def ask_burst(self, card: int, now_s: float) -> Read:
        """Return the command that reads the fast values of one card."""
        self._await(now_s)
        self.burst = self._new_id()
        return Read(self.burst, ("fast",), card)

    def ask_take(self, card: int, now_s: float) -> Take:
        """Return the command that takes up a card that was left out."""
        self._await(now_s)
        self.retrying = card
        return Take(card)

    def note(self, event: Event, now_s: float) -> None:
        """Take note of a message."""
        self.silent_from_s = now_s
        if isinstance(event, At):
            self.at = event.card
        elif isinstance(event, Hello):
            self.count = event.count
        elif isinstance(event, CardFound):
            self._found(event)
        elif isinstance(event, Ready):
            self.ready, self.at = True, None
        elif isinstance(event, Values):
            self._answered(event)
        elif isinstance(event, Done):
            self._done(event, now_s)

    def _found(self, card: CardFound) -> None:
        if self.retrying == card.card:
            self.retrying = self.at = None
            self._asked_s.clear()

    def _answered(self, answer: Values) -> None:
        if answer.id == self.sweep:
            self.answered += 1
            if answer.refused and not answer.lost:
                self.refused.append(answer.refused)

    def _done(self, done: Done, now_s: float) -> None:
        self.at = None
        if done.id == self.burst:
            self.burst = None
        if done.id == self.sweep:
            self.sweep = None
            if self.good_since_s is None and not self.all_refused:
                self.good_since_s = now_s

    @property
    def none_opened(self) -> bool:
        """Whether there are cards to open and not one of them could be opened."""
        left_out = sum(index < self.count for index in self.skipped)
        return 0 < len(self.unopened) == self.count - left_out

    @property
    def all_refused(self) -> bool:
        """Whether in the last whole sweep not one call about any card succeeded."""
        return bool(self.refused) and len(self.refused) == self.answered

    def healthy(self, now_s: float) -> bool:
        """Return whether it has been good for long: such a child is replaced at once."""
        return self.good_since_s is not None and now_s - self.good_since_s >= HEALTHY_AFTER_S

    def forgive(self, away_s: float) -> None:
        """Leave a time out of its silence in which the agent itself was stopped."""
        self.silent_from_s += away_s

    def _due(self, tier: Tier, period_s: float, now_s: float) -> bool:
        if tier == "fast":
            return True
        asked_s = self._asked_s.get(tier)
        return asked_s is None or now_s - asked_s >= period_s - DUE_SLACK_S

    def _await(self, now_s: float) -> None:
        if not self.waiting:
            self.silent_from_s = now_s

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id
