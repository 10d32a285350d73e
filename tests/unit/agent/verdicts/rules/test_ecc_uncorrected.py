"""Tests of agent.verdicts.rules.ecc_uncorrected."""

from agent.verdicts.rules import ecc_uncorrected
from tests.support.snapshots import busy_values
from tests.support.views import THRESHOLDS, steady, view_of

KEY = "ecc_errors_uncorrected_volatile"


def test_an_uncorrected_error_makes_a_card_faulty() -> None:
    """One is one too many."""
    conclusion = ecc_uncorrected.judge(view_of(steady(busy_values(**{KEY: 1.0}))), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause, conclusion.evidence["errors"]) == ("faulty", "uncorrected", 1)


def test_a_reset_clears_it() -> None:
    """Health is judged anew each tick."""
    rows = [*steady(busy_values(**{KEY: 2.0})), busy_values(**{KEY: 0.0})]

    assert ecc_uncorrected.judge(view_of(rows), THRESHOLDS) is None


def test_errors_of_the_cards_whole_life_are_history() -> None:
    """So is a card that does not tell."""
    assert ecc_uncorrected.judge(view_of(steady(busy_values(ecc_errors_uncorrected_aggregate=9.0))), THRESHOLDS) is None
    assert ecc_uncorrected.judge(view_of(steady({"power_watts": 1.0})), THRESHOLDS) is None
