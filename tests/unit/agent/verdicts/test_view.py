"""Tests of agent.verdicts.view."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.verdicts.view import EMPTY_WINDOW, Window

NAN = math.nan


def window(*values: float, step_s: float = 1.0) -> Window:
    """Return a window of one column."""
    return Window(step_s, [step_s * n for n in range(len(values))], {"x": values})


def test_an_empty_window_knows_nothing() -> None:
    """Every question about nothing is answered with None or nothing."""
    assert EMPTY_WINDOW.last("x") is None
    assert EMPTY_WINDOW.values("x", 30) == []
    assert EMPTY_WINDOW.covered("x", 30) is None
    assert EMPTY_WINDOW.mean("x", 30) is None
    assert EMPTY_WINDOW.share("x", 30) is None
    assert EMPTY_WINDOW.increase("x", 30) is None
    assert EMPTY_WINDOW.tail("x", 1) is None
    assert EMPTY_WINDOW.start(10) == 0


def test_the_last_value_is_the_newest_rows_or_none() -> None:
    """A value that is unknown now is not replaced by an older one."""
    assert window(1, 2).last("x") == 2
    assert window(1, NAN).last("x") is None
    assert window(1).last("y") is None


def test_a_span_holds_the_rows_of_so_many_seconds() -> None:
    """Thirty seconds are thirty rows of a second each, unknown ones left out."""
    rows = window(*range(100))

    assert rows.values("x", 30) == list(range(70, 100))
    assert window(1, NAN, 3).values("x", 30) == [1, 3]


def test_a_span_is_covered_by_four_fifths_of_its_rows() -> None:
    """A mean is given from 80 % of the span on."""
    assert window(*[1.0] * 23).mean("x", 30) is None
    assert window(*[1.0] * 24).mean("x", 30) == 1.0
    assert window(*[1.0] * 8, step_s=10).mean("x", 100) == 1.0


def test_a_gap_does_not_count_as_coverage() -> None:
    """Half a minute without rows leaves the span open."""
    times = [*range(20), *range(60, 70)]
    rows = Window(1.0, times, {"x": [1.0] * 30})

    assert rows.values("x", 30) == [1.0] * 10
    assert rows.mean("x", 30) is None


def test_the_tail_needs_every_row() -> None:
    """One unknown row leaves it open."""
    assert window(0, 1, 1).tail("x", 2) == [1, 1]
    assert window(0, NAN, 1).tail("x", 2) is None
    assert window(1).tail("x", 2) is None


def test_a_share_counts_rows_at_or_above_a_bound() -> None:
    """Three of thirty are a tenth."""
    assert window(*[0.0] * 27, 1, 1, 1).share("x", 30) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("values", "increase"),
    [
        ((5, 5, 5, 5), 0),
        ((0, 0, 4, 4, 4), 4),
        ((0, 0, 1000, 0, 0), 0),
        ((1000, 1000, 0, 1000, 1000), 0),
        ((7, 8, 9, 0, 1, 2, 3, 3), 3),
        ((1, 2), None),
    ],
)
def test_a_counter_rises_across_resets_and_not_by_one_garbled_value(
    values: tuple[float, ...], increase: float | None
) -> None:
    """A lone spike or dip makes no rise; after a reset counting goes on from 0."""
    assert window(*values).increase("x", 100) == increase


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 1000), min_size=5, max_size=40), st.data())
def test_one_garbled_value_within_a_rising_counter_changes_nothing_much(steps: list[int], data: st.DataObject) -> None:
    """The rise with one value replaced is never above the true one."""
    values = [float(sum(steps[: n + 1])) for n in range(len(steps))]
    place = data.draw(st.integers(1, len(values) - 2))
    garbled = [*values[:place], data.draw(st.floats(0, 1e12)), *values[place + 1 :]]

    found = window(*garbled).increase("x", 1000)

    assert found is not None
    assert 0 <= found <= values[-1] - values[0] + 1e-6


def test_a_rate_is_the_rise_a_second() -> None:
    """Also where the ends are left out by the median of three."""
    assert window(*[2.0 * n for n in range(20)]).rate("x", 100) == pytest.approx(2.0)
    assert window(*[120.0 * n for n in range(20)], step_s=60).rate("x", 600) == pytest.approx(2.0)
    assert window(1, 2, 3, 4).rate("x", 100) is None
