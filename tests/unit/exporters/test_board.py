"""The latest snapshot and rates of the host's counters."""

import msgspec
import pytest

from agent.model.metrics import Sample
from agent.model.snapshot import Snapshot
from exporters.board import Board


def at(taken_s: float, *values: float) -> Snapshot:
    """Return a snapshot whose host has one counter a value."""
    host = tuple(Sample("reads_total", value, (f"sd{index}",)) for index, value in enumerate(values))
    return Snapshot(taken_s, 0.0, host=host)


def test_the_latest_snapshot_is_the_one_published_last() -> None:
    """Before the first there is none."""
    board = Board()
    assert board.latest() is None
    assert board.host_rates() == {}
    last = at(2.0)
    board.publish(at(1.0))
    board.publish(last)
    assert board.latest() is last


def test_one_snapshot_has_no_rates() -> None:
    """A rate needs two moments."""
    board = Board()
    board.publish(at(1.0, 5.0))
    assert board.host_rates() == {}


def test_rates_are_over_the_last_quarter_of_a_minute() -> None:
    """What was long ago does not count, whatever the tick."""
    board = Board()
    for second in range(60):
        board.publish(at(float(second), 100.0 * max(0, second - 40)))
    assert board.host_rates()["reads_total", ("sd0",)] == pytest.approx(100.0)
    slow = Board()
    for second in range(0, 120, 30):
        slow.publish(at(float(second), 30.0 * second))
    assert slow.host_rates()["reads_total", ("sd0",)] == pytest.approx(30.0)


def test_what_fell_or_is_new_has_no_rate() -> None:
    """A counter that began again and a device that appeared are left out."""
    board = Board()
    board.publish(at(0.0, 50.0))
    board.publish(at(10.0, 5.0, 7.0))
    assert board.host_rates() == {}


def test_the_same_moment_twice_gives_no_rate() -> None:
    """Nothing is divided by no time."""
    board = Board()
    board.publish(at(3.0, 1.0))
    board.publish(msgspec.structs.replace(at(3.0, 2.0), taken_wall_s=1.0))
    assert board.host_rates() == {}
