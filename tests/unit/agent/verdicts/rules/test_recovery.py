"""Tests of agent.verdicts.rules.recovery."""

import pytest

from agent.verdicts.rules import recovery
from tests.support.snapshots import busy_values
from tests.support.views import THRESHOLDS, steady, view_of


@pytest.mark.parametrize(
    ("code", "cause"), [(code, cause) for code, (cause, _) in recovery.ACTIONS.items()] + [(12, "other")]
)
def test_what_the_driver_asks_for_is_passed_on(code: int, cause: str) -> None:
    """Codes of a later driver too."""
    conclusion = recovery.judge(view_of(steady(busy_values(recovery_action=float(code)))), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("faulty", cause)


def test_no_action_is_no_finding() -> None:
    """Zero is the healthy answer."""
    assert recovery.judge(view_of(steady(busy_values(recovery_action=0.0))), THRESHOLDS) is None
