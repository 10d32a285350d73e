"""Cards the reader leaves out: a driver call about them hung or crashed it, or they cannot be opened."""

from collections.abc import Collection
from typing import Final

import msgspec

from agent.nvml.advice import HUNG

FIRST_RETRY_S: Final = 60.0
LONGEST_RETRY_S: Final = 600.0


class Absence(msgspec.Struct, frozen=True):
    """One card that is left out, or was a moment ago."""

    error: str
    since_s: float
    retry_s: float
    """Seconds from a failure to the next try; doubled each time."""
    due_s: float
    """When the card is tried again, or, once it is back, when its past is forgotten."""
    out: bool = True


class Absences:
    """Which cards are left out, since when, and when each is tried again."""

    def __init__(self) -> None:
        self._cards: dict[int, Absence] = {}

    def leave_out(self, index: int, error: str, since_s: float, now_s: float) -> None:
        """Leave a card out; one that was back for less than its retry time waits twice as long."""
        past = self._cards.get(index)
        retry_s = FIRST_RETRY_S if past is None else min(LONGEST_RETRY_S, past.retry_s * 2)
        started_s = past.since_s if past is not None and past.out else since_s
        self._cards[index] = Absence(error, started_s, retry_s, now_s + retry_s)

    def back(self, index: int, now_s: float) -> bool:
        """Note that a card answers; return whether it had been left out."""
        past = self._cards.get(index)
        if past is None or not past.out:
            return False
        self._cards[index] = msgspec.structs.replace(past, out=False, due_s=now_s + LONGEST_RETRY_S)
        return True

    def due(self, now_s: float, paused: Collection[int]) -> int | None:
        """Return a card to try again now that is not ``paused``; forget those that have been back for long."""
        for index in [index for index, past in self._cards.items() if not past.out and past.due_s <= now_s]:
            del self._cards[index]
        return next((index for index in self.out() if self._cards[index].due_s <= now_s and index not in paused), None)

    def out(self) -> list[int]:
        """Return the indices of the cards left out, in order."""
        return sorted(index for index, past in self._cards.items() if past.out)

    def hung_s(self, now_s: float) -> dict[int, float]:
        """Return for how long each card has hung that is left out for it."""
        return {index: now_s - self._cards[index].since_s for index in self.out() if self._cards[index].error == HUNG}
