"""Tests of agent.verdicts.rules.card_lost."""

import pytest

from agent.verdicts import keys
from agent.verdicts.rules import card_lost
from agent.verdicts.view import CardView
from tests.support.views import THRESHOLDS, view_of

HELD = frozenset({card_lost.NAME})


def after(*lost: int, error: str = "GPU_IS_LOST", hung_s: float = 0.0, held: bool = False) -> CardView:
    """Return a card after ticks in which it was lost (1) or not (0)."""
    rows = [{keys.POWER: 1.0, keys.LOST: float(one)} for one in lost]
    return view_of(rows, lost=error if lost[-1] else "", hung_s=hung_s, held=HELD if held else frozenset())


@pytest.mark.parametrize(
    ("error", "hung_s", "cause"),
    [
        ("GPU_IS_LOST", 0.0, "gone"),
        ("GPU_NOT_FOUND", 0.0, "gone"),
        ("RESET_REQUIRED", 0.0, "reset_required"),
        ("HUNG", 12.0, "hung"),
        ("HUNG", 0.0, "hung"),
        ("IRQ_ISSUE", 0.0, "unreachable"),
        ("CRASHED", 0.0, "unreachable"),
    ],
)
def test_the_cause_is_told_from_the_error(error: str, hung_s: float, cause: str) -> None:
    """Each asks for another action."""
    conclusion = card_lost.judge(after(0, 1, 1, error=error, hung_s=hung_s), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("lost", cause)
    assert "0000:1b:00.0" in conclusion.summary


def test_two_ticks_confirm_it() -> None:
    """One is a blip."""
    assert card_lost.judge(after(0, 0, 1), THRESHOLDS) is None
    assert card_lost.judge(after(0, 1, 1), THRESHOLDS) is not None


def test_three_good_ticks_bring_it_back() -> None:
    """Not one, not two."""
    assert card_lost.judge(after(1, 1, 0, held=True), THRESHOLDS) is not None
    assert card_lost.judge(after(1, 0, 0, held=True), THRESHOLDS) is not None
    assert card_lost.judge(after(1, 0, 0, 0, held=True), THRESHOLDS) is None
