"""Tests of agent.verdicts.rules.driver_hung."""

import pytest

from agent.verdicts.rules import driver_hung
from tests.support.nodes import node_of
from tests.support.views import THRESHOLDS, steady, view_of


def test_a_call_that_does_not_come_back_is_the_nodes_fault() -> None:
    """Where no card gives values."""
    conclusion = driver_hung.judge(node_of([view_of([{}])], up=False, hung_s=12), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("driver_hung", "no_answer")
    assert conclusion.evidence == {"hung_seconds": 12, "threshold_seconds": 5}


@pytest.mark.parametrize("hung_s", [0.0, 3.0])
def test_a_slow_call_hangs_not(hung_s: float) -> None:
    """Some first calls take seconds."""
    assert driver_hung.judge(node_of([view_of([{}])], hung_s=hung_s), THRESHOLDS) is None


def test_one_card_that_hangs_is_not_the_driver() -> None:
    """The others still answer: the card's own rule speaks."""
    cards = [view_of([{}], hung_s=20, lost="HUNG"), view_of(steady({"power_watts": 1.0}), index=1)]

    assert driver_hung.judge(node_of(cards, hung_s=20), THRESHOLDS) is None


def test_a_slow_start_is_no_hang() -> None:
    """Initialising eight cards takes its time."""
    assert driver_hung.judge(node_of(up=False, error="STARTING", hung_s=30), THRESHOLDS) is None
    assert driver_hung.judge(node_of(up=False, error="HUNG", hung_s=30), THRESHOLDS) is not None
