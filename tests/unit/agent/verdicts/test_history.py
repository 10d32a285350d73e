"""Tests of agent.verdicts.history."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.verdicts.history import SLACK, CardHistory, MinuteRecorder, Recorder


def test_rows_are_added_at_most_once_a_step() -> None:
    """Ten ticks a second leave about one row a second."""
    recorder = Recorder(("x",), 1.0, 300)

    added = [recorder.add(n / 10, {"x": n}) for n in range(30)]

    assert sum(added) == 4
    assert recorder.window.values("x", 300) == [0, 9, 18, 27]


def test_what_was_unknown_stays_unknown() -> None:
    """A key that appears late has no past, one that vanishes has no presence."""
    recorder = Recorder(("x", "y"), 1.0, 300)
    recorder.add(0, {"x": 1})
    recorder.add(1, {"y": 2})

    assert recorder.window.last("x") is None
    assert recorder.window.values("x", 10) == [1]
    assert recorder.window.values("y", 10) == [2]


def test_a_key_nobody_reads_takes_no_room() -> None:
    """Only what was asked for is kept, and only once it is there."""
    recorder = Recorder(("x", "y"), 1.0, 300)
    recorder.add(0, {"x": 1, "z": 5})

    assert set(recorder.window.columns) == {"x"}


def test_the_past_is_bounded() -> None:
    """A day of ticks leaves five minutes and a little."""
    recorder = Recorder(("x",), 1.0, 300)
    for n in range(5000):
        recorder.add(n, {"x": n})

    assert 300 <= len(recorder.window.times_s) <= 300 * SLACK
    assert len(recorder.window.columns["x"]) == len(recorder.window.times_s)
    assert recorder.window.values("x", 30) == list(range(4970, 5000))


def test_a_minute_is_the_mean_of_gauges_and_the_latest_of_counters() -> None:
    """Sixty rows make one."""
    recorder = MinuteRecorder(("power",), ("errors",))

    completed = [n for n in range(121) if recorder.add(n, {"power": float(n), "errors": float(n)})]

    assert completed == [60, 120]
    assert recorder.window.values("power", 3600) == [29.5, 89.5]
    assert recorder.window.values("errors", 3600) == [59, 119]


def test_a_history_says_when_a_minute_is_complete() -> None:
    """Rules that read minutes are asked then."""
    history = CardHistory(("power",), ("power",), (), 1.0)

    assert [n for n in range(130) if history.add(n, {"power": 1.0})] == [60, 120]
    assert history.recent.values("power", 10) == [1.0] * 10


def test_slow_ticks_make_slow_rows() -> None:
    """With a tick of ten seconds a row stands for ten seconds."""
    history = CardHistory(("power",), ("power",), (), 10.0)
    for n in range(12):
        history.add(10.0 * n, {"power": 1.0})

    assert history.recent.step_s == 10.0
    assert history.recent.mean("power", 100) == 1.0


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 400), st.dictionaries(st.sampled_from("xyz"), st.floats(-9, 9))), max_size=80)
)
def test_columns_are_as_long_as_time_whatever_comes_and_goes(ticks: list[tuple[float, dict[str, float]]]) -> None:
    """Stops of any length and keys that come and go leave whole rows."""
    recorder = Recorder(("x", "y"), 1.0, 30)
    now_s = 0.0
    for step_s, values in ticks:
        now_s += step_s
        recorder.add(now_s, values)

    window = recorder.window
    assert all(len(column) == len(window.times_s) for column in window.columns.values())
    assert list(window.times_s) == sorted(window.times_s)


@pytest.mark.parametrize("tick_s", [0.05, 1.0, 60.0])
def test_memory_does_not_depend_on_the_tick(tick_s: float) -> None:
    """Twenty ticks a second or one a minute: the rows stay bounded."""
    recorder = Recorder(("x",), max(1.0, tick_s), 300)
    for n in range(3000):
        recorder.add(n * tick_s, {"x": 1.0})

    assert len(recorder.window.times_s) <= 300 * SLACK
