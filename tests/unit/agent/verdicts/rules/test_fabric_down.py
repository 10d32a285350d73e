"""Tests of agent.verdicts.rules.fabric_down."""

import pytest

from agent.verdicts.rules import fabric_down
from agent.verdicts.view import CardView
from tests.support.nodes import node_of
from tests.support.views import THRESHOLDS, steady, view_of


def cards(*states: float, seconds: int = 70) -> list[CardView]:
    """Return cards whose fabric registration stood so for a while."""
    return [view_of(steady({"fabric_state": state}, seconds), index=n) for n, state in enumerate(states)]


@pytest.mark.parametrize("states", [(2, 2, 2, 2), (1, 1, 3, 3), (2,)])
def test_half_the_cards_without_a_fabric_are_one_fault(states: tuple[float, ...]) -> None:
    """The fabric manager is one for all of them."""
    conclusion = fabric_down.judge(node_of(cards(*states)), THRESHOLDS)

    assert conclusion is not None
    assert conclusion.state == "fabric_down"
    assert conclusion.evidence["cards_with_fabric"] == len(states)


def test_one_of_four_is_not_the_fabric_manager() -> None:
    """Nor are cards that are registered, or have no fabric."""
    assert fabric_down.judge(node_of(cards(2, 3, 3, 3)), THRESHOLDS) is None
    assert fabric_down.judge(node_of(cards(3, 3)), THRESHOLDS) is None
    assert fabric_down.judge(node_of([view_of(steady({"power_watts": 1.0}))]), THRESHOLDS) is None


def test_registration_takes_its_time_after_a_start() -> None:
    """Half a minute is no fault."""
    assert fabric_down.judge(node_of(cards(2, 2, seconds=40)), THRESHOLDS) is None
