"""Tests of agent.verdicts.rules.maintenance."""

from agent.verdicts.rules import maintenance
from tests.support.views import THRESHOLDS, view_of


def test_a_paused_card_is_in_maintenance() -> None:
    """And only a paused one."""
    conclusion = maintenance.judge(view_of([{}], paused=True), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("maintenance", "paused")
    assert maintenance.judge(view_of([{}]), THRESHOLDS) is None
