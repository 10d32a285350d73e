"""Tests of agent.verdicts.rules.low_clocks."""

import pytest

from agent.verdicts.rules import low_clocks
from tests.support.snapshots import busy_values, h200_values
from tests.support.views import THRESHOLDS, steady, view_of

UNCAPPED = {"throttle_active_sw_power_cap": 0.0}


def test_low_clocks_without_a_reason_ask_for_a_probe() -> None:
    """They condemn nobody: throughput decides."""
    view = view_of(steady(busy_values(clock_sm_hertz=1.2e9, **UNCAPPED)))
    conclusion = low_clocks.judge(view, THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause, conclusion.suspect) == ("ok", "unexplained", True)


def test_a_clock_at_its_floor_for_minutes_is_a_slow_card() -> None:
    """No probe is needed to see it."""
    slow = busy_values(clock_sm_hertz=345e6, **UNCAPPED)
    early = low_clocks.judge(view_of(steady(slow, 60)), THRESHOLDS)
    late = low_clocks.judge(view_of(steady(slow, 130)), THRESHOLDS)

    assert early is not None
    assert late is not None
    assert (early.state, late.state, late.cause) == ("ok", "degraded", "stuck")


@pytest.mark.parametrize("reason", low_clocks.EXPLANATIONS)
def test_every_reason_of_the_driver_explains(reason: str) -> None:
    """Whoever holds the clocks down, it is known."""
    values = busy_values(**{"clock_sm_hertz": 1.0e9, **UNCAPPED, f"throttle_active_{reason}": 1.0})

    assert low_clocks.judge(view_of(steady(values)), THRESHOLDS) is None


@pytest.mark.parametrize("values", [busy_values(clock_sm_hertz=1.9e9, **UNCAPPED), h200_values()])
def test_high_clocks_and_idle_cards_need_no_reason(values: dict[str, float]) -> None:
    """An idle card saves power."""
    assert low_clocks.judge(view_of(steady(values)), THRESHOLDS) is None


def test_clocks_from_before_the_work_do_not_count() -> None:
    """Half a minute after a start the window still holds idle clocks."""
    rows = [*[h200_values()] * 30, *[busy_values(**UNCAPPED)] * 20]

    assert all(low_clocks.judge(view_of(rows[:n]), THRESHOLDS) is None for n in range(30, 51))


@pytest.mark.parametrize("missing", ["clock_sm_hertz", "clock_max_sm_hertz", "utilization_ratio"])
def test_what_is_not_read_is_not_judged(missing: str) -> None:
    """MIG and old cards tell less."""
    values = busy_values(clock_sm_hertz=3e8, **UNCAPPED)
    del values[missing]

    assert low_clocks.judge(view_of(steady(values)), THRESHOLDS) is None
