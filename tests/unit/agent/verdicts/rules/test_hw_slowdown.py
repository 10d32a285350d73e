"""Tests of agent.verdicts.rules.hw_slowdown."""

import pytest

from agent.verdicts.rules import hw_slowdown
from tests.support.snapshots import busy_values
from tests.support.views import THRESHOLDS, steady, view_of


def test_the_general_flag_alone_is_a_slowdown() -> None:
    """As old drivers tell it, which know no other flags."""
    values = busy_values(throttle_active_hw_slowdown=1.0)
    for key in ("throttle_active_hw_thermal", "throttle_active_hw_power_brake"):
        del values[key]
    conclusion = hw_slowdown.judge(view_of(steady(values)), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("throttled", "hw_slowdown")


@pytest.mark.parametrize("named", ["hw_thermal", "hw_power_brake"])
def test_a_named_reason_leaves_nothing_to_say(named: str) -> None:
    """One fault, one finding."""
    values = busy_values(**{"throttle_active_hw_slowdown": 1.0, f"throttle_active_{named}": 1.0})

    assert hw_slowdown.judge(view_of(steady(values)), THRESHOLDS) is None


def test_without_the_flag_there_is_nothing() -> None:
    """A busy card."""
    assert hw_slowdown.judge(view_of(steady(busy_values())), THRESHOLDS) is None
