"""One check of the doctor: what was found and what to do about it."""

from collections.abc import Iterable
from typing import Final, Literal

import msgspec

Outcome = Literal["pass", "warn", "fail", "skip"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("pass", "warn", "fail", "skip")


class Check(msgspec.Struct, frozen=True):
    """What one check found; ``next_action`` is empty where nothing is to be done."""

    name: str
    outcome: Outcome
    found: str
    next_action: str = ""


def worst(checks: Iterable[Check]) -> Outcome:
    """Return ``fail`` before ``warn`` before ``pass``; what was skipped does not count."""
    outcomes = {check.outcome for check in checks}
    return "fail" if "fail" in outcomes else "warn" if "warn" in outcomes else "pass"
