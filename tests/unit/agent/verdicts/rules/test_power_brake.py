"""Tests of agent.verdicts.rules.power_brake."""

from agent.verdicts.rules import power_brake
from tests.support.snapshots import busy_values, h200_values
from tests.support.views import THRESHOLDS, steady, view_of


def test_the_brake_slows_a_busy_card() -> None:
    """The power supply asked for it."""
    conclusion = power_brake.judge(view_of(steady(busy_values(throttle_active_hw_power_brake=1.0))), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("throttled", "power_brake")


def test_without_the_brake_or_without_work_there_is_nothing() -> None:
    """The power cap is another thing."""
    assert power_brake.judge(view_of(steady(busy_values())), THRESHOLDS) is None
    assert power_brake.judge(view_of(steady(h200_values(throttle_active_hw_power_brake=1.0))), THRESHOLDS) is None
