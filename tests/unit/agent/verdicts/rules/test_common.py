"""Tests of agent.verdicts.rules.common."""

import pytest

from agent.verdicts import keys
from agent.verdicts.rules.common import busy_ratio, confirmed, held_share, throttle_share
from tests.support.snapshots import busy_values
from tests.support.views import THRESHOLDS, steady, view_of

FLAG = keys.active("hw_thermal")
SECONDS = keys.busy_seconds("hw_thermal")


def test_busy_is_the_mean_utilisation() -> None:
    """Unknown where it was not read."""
    assert busy_ratio(view_of(steady({keys.UTILIZATION: 0.5})), 30) == pytest.approx(0.5)
    assert busy_ratio(view_of(steady({keys.POWER: 1.0})), 30) is None


def test_a_reason_holds_for_what_was_sampled_or_counted_whichever_is_more() -> None:
    """The driver's counter sees what happens between two ticks."""
    sampled = view_of([{FLAG: float(n % 10 == 0), SECONDS: 0.0} for n in range(60)])
    counted = view_of([{FLAG: 0.0, SECONDS: 0.5 * n} for n in range(60)])

    assert held_share(sampled.recent, "hw_thermal", 30) == pytest.approx(0.1)
    assert held_share(counted.recent, "hw_thermal", 30) == pytest.approx(0.45, abs=0.03)


def test_a_reason_that_is_not_told_is_unknown() -> None:
    """An old driver does not name every reason."""
    assert held_share(view_of(steady(busy_values())).recent, "no_such_reason", 30) is None


def test_without_the_flag_the_counter_alone_says_nothing() -> None:
    """A counter that was seen a moment ago only is no history."""
    assert held_share(view_of(steady({SECONDS: 5.0})).recent, "hw_thermal", 30) is None


@pytest.mark.parametrize(
    ("utilization", "ticks_in_ten", "held", "found"),
    [(0.9, 2, False, True), (0.1, 10, False, False), (0.9, 0, False, False), (0.9, 1, True, True)],
)
def test_throttling_needs_work_and_a_share(utilization: float, ticks_in_ten: int, held: bool, found: bool) -> None:
    """An idle card's clocks are nobody's fault; what holds stays until half the threshold."""
    rows = [busy_values(**{keys.UTILIZATION: utilization, FLAG: float(n % 10 < ticks_in_ten)}) for n in range(90)]
    view = view_of(rows, held=frozenset({"rule"} if held else ()))

    assert (throttle_share(view, THRESHOLDS, "rule", "hw_thermal") is not None) is found


def test_what_is_read_each_ten_seconds_is_confirmed_by_a_second_reading() -> None:
    """One garbled reading, repeated for ten ticks, confirms nothing."""
    key = keys.ECC_UNCORRECTED
    rows = [{key: 0.0}] * 40

    assert confirmed(view_of([*rows, *[{key: 1.0}] * 10]).recent, key) is None
    assert confirmed(view_of([*rows, *[{key: 1.0}] * 26]).recent, key) == 1.0
    assert confirmed(view_of([]).recent, key) is None
