"""Tests of agent.verdicts.processes."""

import msgspec
import pytest

from agent.model.process import HostCpuReading, ProcessReading, ProcessReport
from agent.verdicts.processes import ProcessHistory


def report(at_s: float, *processes: ProcessReading) -> ProcessReport:
    """Return a sweep."""
    return ProcessReport(HostCpuReading(at_s, 16, 15 * at_s), processes)


def process(pid: int, at_s: float, *, started_s: float = 1.0, blocked: int = 0, gpus: str = "GPU-a") -> ProcessReading:
    """Return a reading of a process that uses two cores."""
    return ProcessReading(
        pid, started_s, tuple(gpus.split()), at_s, cpu_s=2 * at_s, allowed_cores=16, blocked_threads=blocked
    )


def test_one_sweep_is_a_span_of_no_length() -> None:
    """It says that the process has just come."""
    history = ProcessHistory(30)
    history.add(report(0, process(7, 0)))

    assert [span.seconds for span in history.spans()["GPU-a"]] == [0]


@pytest.mark.parametrize("pace_s", [1, 5, 7, 8, 12, 20, 45])
def test_the_past_covers_the_window_at_any_pace(pace_s: int) -> None:
    """Else a window would never be seen whole where sweeps are rare."""
    history = ProcessHistory(30)
    for at_s in range(0, 200, pace_s):
        history.add(report(at_s, process(7, at_s)))
        (span,) = history.spans()["GPU-a"]
        assert span.seconds >= min(30, at_s)
        assert span.seconds < 30 + pace_s


def test_a_span_reaches_from_the_first_to_the_last_sweep_within_the_window() -> None:
    """A minute of sweeps leaves the last thirty seconds and a little."""
    history = ProcessHistory(30)
    for at_s in range(0, 65, 5):
        history.add(report(at_s, process(7, at_s, blocked=1)))

    (span,) = history.spans()["GPU-a"]
    assert (span.first.taken_monotonic_s, span.last.taken_monotonic_s) == (30, 60)
    assert (span.seconds, span.blocked_threads) == (30, 1)
    assert span.host_last.idle_s - span.host_first.idle_s == 15 * 30


def test_a_pid_that_was_used_again_is_another_process() -> None:
    """Its counters start anew."""
    history = ProcessHistory(30)
    history.add(report(0, process(7, 0, started_s=1)))
    history.add(report(5, process(7, 5, started_s=4)))

    assert [span.seconds for span in history.spans()["GPU-a"]] == [0]


def test_a_process_that_has_left_is_not_spoken_of() -> None:
    """Only processes of the latest sweep have spans."""
    history = ProcessHistory(30)
    history.add(report(0, process(7, 0), process(8, 0)))
    history.add(report(5, process(7, 5), process(8, 5)))
    history.add(report(10, process(8, 10)))

    assert [span.last.pid for span in history.spans()["GPU-a"]] == [8]


def test_a_process_on_two_cards_speaks_for_both() -> None:
    """Each card gets its span."""
    history = ProcessHistory(30)
    for at_s in (0, 5):
        history.add(report(at_s, process(7, at_s, gpus="GPU-a GPU-b")))

    assert set(history.spans()) == {"GPU-a", "GPU-b"}


def test_the_same_sweep_twice_counts_once() -> None:
    """The loop ticks faster than sweeps are made."""
    history = ProcessHistory(30)
    sweep = report(0, process(7, 0))

    assert history.add(sweep)
    assert not history.add(sweep)
    assert not history.add(msgspec.structs.replace(sweep))


def test_where_processes_cannot_be_seen_the_past_is_dropped() -> None:
    """No verdict rests on what was seen before."""
    history = ProcessHistory(30)
    history.add(report(0, process(7, 0)))
    history.add(report(5, process(7, 5)))
    history.add(None)

    assert history.spans() == {}
