"""Tests of agent.verdicts.rules.thermal."""

import pytest

from agent.verdicts.rules import thermal
from tests.support.snapshots import busy_values, h200_values
from tests.support.views import THRESHOLDS, steady, view_of


@pytest.mark.parametrize("cause", ["hw_thermal", "sw_thermal"])
def test_heat_that_slows_a_busy_card_is_throttling(cause: str) -> None:
    """Hardware and software slowdown are told apart; the temperature is evidence."""
    values = busy_values(**{f"throttle_active_{cause}": 1.0, "temperature_celsius": 91.0})
    conclusion = thermal.judge(view_of(steady(values)), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("throttled", cause)
    assert conclusion.evidence["temperature_celsius"] == 91
    assert conclusion.evidence["throttled_ratio"] == 1


def test_hardware_slowdown_is_named_before_software_slowdown() -> None:
    """It is the more urgent of the two."""
    values = busy_values(throttle_active_hw_thermal=1.0, throttle_active_sw_thermal=1.0)
    conclusion = thermal.judge(view_of(steady(values)), THRESHOLDS)

    assert conclusion is not None
    assert conclusion.cause == "hw_thermal"


def test_it_is_seen_within_a_minute() -> None:
    """Five seconds of heat after half a minute of work are enough."""
    rows = [*[busy_values()] * 30, *[busy_values(throttle_active_hw_thermal=1.0)] * 5]

    assert thermal.judge(view_of(rows), THRESHOLDS) is not None


@pytest.mark.parametrize(
    "values",
    [
        busy_values(temperature_celsius=84.0),
        busy_values(throttle_active_sw_power_cap=1.0),
        busy_values(throttle_active_applications_clocks=1.0),
        h200_values(throttle_active_sw_thermal=1.0),
        h200_values(throttle_active_gpu_idle=1.0),
    ],
)
def test_what_is_no_fault_is_none(values: dict[str, float]) -> None:
    """Warm, capped, set clocks, and whatever an idle card does."""
    assert thermal.judge(view_of(steady(values)), THRESHOLDS) is None


def test_what_holds_goes_on_holding_although_the_past_is_short() -> None:
    """Half a minute after a start nothing is known of the whole minute that decides about the end."""
    rows = steady(busy_values(throttle_active_hw_thermal=1.0), seconds=30)

    assert thermal.judge(view_of(rows, held=frozenset({thermal.NAME})), THRESHOLDS) is not None


def test_one_sample_is_none() -> None:
    """Nor are two in thirty."""
    rows = [busy_values(throttle_active_hw_thermal=float(n in (40, 50))) for n in range(60)]

    assert thermal.judge(view_of(rows), THRESHOLDS) is None


def test_a_card_that_does_not_tell_its_temperature_is_judged_all_the_same() -> None:
    """The reason is enough."""
    values = busy_values(throttle_active_hw_thermal=1.0)
    del values["temperature_celsius"]
    conclusion = thermal.judge(view_of(steady(values)), THRESHOLDS)

    assert conclusion is not None
    assert "temperature_celsius" not in conclusion.evidence
