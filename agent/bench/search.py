"""The largest batch that fits: doubled until memory does not hold it, then narrowed down."""

from collections.abc import Callable, Sequence
from typing import Final, Literal

Outcome = Literal["fits", "oom", "failed"]
Attempt = Callable[[tuple[int, ...]], Sequence[Outcome]]
"""Tries batches one after the other in one fresh child; returns an outcome for each, the first bad one the last."""

RESOLUTION: Final = 16
"""The search ends when the largest good batch and the smallest bad one differ by a sixteenth, or by 1."""


def find_largest(attempt: Attempt, first: int, most: int, *, narrow: bool = True) -> int:
    """Return the largest batch up to ``most`` that was seen to fit, 0 where none did.

    What a used child could not hold is tried again in a fresh one, since the first may have been fragmented:
    only a batch that did not fit as the first of its child bounds the search. A batch that fails for another
    reason than memory ends it. Without ``narrow`` it is the largest of the doubled batches that fits.
    """
    good, bad = 0, most + 1
    ladder = doublings(first, most)
    while ladder and bad > most:
        outcomes = attempt(ladder)
        fitted = sum(outcome == "fits" for outcome in outcomes)
        good = ladder[fitted - 1] if fitted else good
        if "failed" in outcomes:
            return good
        if "oom" in outcomes and not fitted:
            bad = ladder[0]
        ladder = ladder[fitted:]
    while narrow and bad - good > max(1, good // RESOLUTION):
        middle = (good + bad) // 2
        match attempt((middle,))[0]:
            case "fits":
                good = middle
            case "oom":
                bad = middle
            case "failed":
                return good
    return good


def doublings(first: int, most: int) -> tuple[int, ...]:
    """Return ``first``, twice that and so on, up to ``most``."""
    found = []
    while first <= most:
        found.append(first)
        first *= 2
    return tuple(found)
