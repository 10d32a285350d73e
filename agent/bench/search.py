"""The largest batch that fits: doubled until memory does not hold it, then narrowed down."""

from collections.abc import Callable, Sequence
from typing import Final, Literal

Outcome = Literal["fits", "oom", "failed"]
Attempt = Callable[[tuple[int, ...]], Sequence[Outcome]]
"""Tries batches one after the other in one fresh child; returns an outcome for each, the first bad one the last."""
Expectation = Callable[[], float]
"""How large a batch memory should hold by what was seen so far; 0 where that is not known."""

RESOLUTION: Final = 8
"""The search ends when the largest good batch and the smallest bad one differ by an eighth, or by 1.

Near the end of memory one try takes a minute: cuDNN looks long for an algorithm that still fits."""
_NEAR: Final = 1 / 8
"""How far an expectation may be off, as a share, before halving is quicker than to walk from it."""


def find_largest(attempt: Attempt, first: int, most: int, expected: Expectation = lambda: 0.0) -> int:
    """Return the largest batch up to ``most`` that was seen to fit, 0 where none did.

    What a used child could not hold may be due to its fragmented memory, so only a batch that did not fit as the
    first of its child bounds the search; one far beyond what is expected is at first taken at its word and tried
    again only where the search ends at it. A batch that fails for another reason than memory ends it.
    """
    good, bad, seen = 0, most + 1, True
    ladder = doublings(first, most)
    while ladder and bad > most:
        outcomes = attempt(ladder)
        fitted = sum(outcome == "fits" for outcome in outcomes)
        good = ladder[fitted - 1] if fitted else good
        if "failed" in outcomes:
            return good
        ladder = ladder[fitted:]
        if "oom" in outcomes and (not fitted or 0 < expected() * (1 + _NEAR) < ladder[0]):
            bad, seen = ladder[0], not fitted
    while bad - good > _step(good) or not seen:
        batch = _between(good, bad, expected()) if bad - good > _step(good) else bad
        match attempt((batch,))[0]:
            case "fits":
                good, bad, seen = (batch, most + 1, True) if batch == bad else (batch, bad, seen)
            case "oom":
                bad, seen = batch, True
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


def _step(batch: int) -> int:
    return max(1, batch // RESOLUTION)


def _between(good: int, bad: int, expected: float) -> int:
    """Return which batch to try next: a little below what is expected, then a step from it, else the middle."""
    middle = (good + bad) // 2
    if not good < expected * (1 + _NEAR):
        return middle
    guess = int(expected * (1 - 1 / (4 * RESOLUTION)))
    if good < guess < bad:
        return guess
    if guess <= good:
        return min(good + _step(good), bad - 1)
    return max(bad - _step(bad * RESOLUTION // (RESOLUTION + 1)), good + 1) if bad > expected * (1 - _NEAR) else middle
