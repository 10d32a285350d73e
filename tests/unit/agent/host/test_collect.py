"""The wrapper around the host collectors."""

from collections.abc import Callable
from typing import get_args

import pytest
from structlog.testing import capture_logs

from agent.config.settings import HostSettings
from agent.host.collect import HOST_METRICS, REASONS, HostCollectors, build
from agent.host.collector import NameTakenError, NothingHereError
from agent.model.metrics import Metric, Sample
from agent.model.vocabulary import HostCollector
from tests.support.clock import FakeClock


class Stub:
    """A collector that does what it is told."""

    def __init__(self, name: str, act: Callable[[], list[Sample]]) -> None:
        self.name = name
        self.metrics = (Metric(f"heatsoak_host_{name}", "A stub.", "gauge"),)
        self.act = act

    def collect(self) -> list[Sample]:
        return self.act()


def good() -> list[Sample]:
    """Return one sample."""
    return [Sample("heatsoak_host_good", 1)]


def raising(error: Exception) -> Callable[[], list[Sample]]:
    """Return what raises ``error``."""

    def act() -> list[Sample]:
        raise error

    return act


def test_a_failing_collector_costs_only_itself() -> None:
    """Before and after it, the others give their samples."""
    collectors = HostCollectors(
        [Stub("bad", raising(RuntimeError("no"))), Stub("good", good), Stub("worse", raising(KeyError("x")))],
        FakeClock(),
    )
    reading = collectors.collect()
    assert reading.samples == tuple(good())
    assert {row.name: row.ok for row in reading.health} == {"bad": False, "good": True, "worse": False}


def test_a_collector_that_fails_half_way_gives_nothing() -> None:
    """No half of a reading, and what it already had is dropped."""

    def half() -> list[Sample]:
        samples = good()
        samples.append(Sample("heatsoak_host_good", float("x")))
        return samples

    assert HostCollectors([Stub("good", half)], FakeClock()).collect().samples == ()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FileNotFoundError(2, "no such file"), "missing"),
        (PermissionError(13, "denied"), "unreadable"),
        (ValueError("x"), "malformed"),
        (IndexError("x"), "malformed"),
        (AssertionError("x"), "internal"),
    ],
)
def test_failures_are_counted_by_reason(error: Exception, reason: str) -> None:
    """Every reason is there at 0 before the first failure."""
    collectors = HostCollectors([Stub("bad", raising(error))], FakeClock())
    for count in (1, 2):
        (row,) = collectors.collect().health
        assert row.errors == {**dict.fromkeys(REASONS, 0), reason: count}
        assert (row.attempts, row.ok, row.last_success_wall_s) == (count, False, None)


def test_health_tells_time_and_last_success() -> None:
    """Duration is of the monotonic clock, the last success a label of the wall clock."""
    clock = FakeClock(wall_s=1000.0)
    stub = Stub("good", good)
    collectors = HostCollectors([stub], clock)

    def slow() -> list[Sample]:
        clock.advance(0.25)
        return good()

    stub.act = slow
    (row,) = collectors.collect().health
    assert (row.ok, row.duration_s, row.last_success_wall_s) == (True, 0.25, 1000.25)
    stub.act = raising(ValueError("x"))
    clock.advance(1)
    (row,) = collectors.collect().health
    assert (row.ok, row.attempts, row.last_success_wall_s) == (False, 2, 1000.25)


def test_nothing_here_is_no_failure() -> None:
    """Neither success nor failure, and nothing is counted."""
    (row,) = HostCollectors([Stub("none", raising(NothingHereError("no x")))], FakeClock()).collect().health
    assert row.ok is None
    assert row.errors == dict.fromkeys(REASONS, 0)


def test_what_changes_is_logged_once() -> None:
    """A failure, another, nothing, recovery: one line each, however many ticks they last."""
    stub = Stub("good", good)
    collectors = HostCollectors([stub], FakeClock())
    steps = [
        good,
        raising(ValueError("x 1")),
        raising(ValueError("x 2")),
        raising(OSError(5, "io")),
        raising(NothingHereError("no x")),
        good,
    ]
    with capture_logs() as logs:
        for step in steps:
            stub.act = step
            collectors.collect()
            collectors.collect()
    assert [(line["event"], line.get("reason", line.get("missing", ""))) for line in logs] == [
        ("collector_failed", "malformed"),
        ("collector_failed", "unreadable"),
        ("collector_has_nothing", "no x"),
        ("collector_recovered", ""),
    ]
    assert {line["collector"] for line in logs} == {"good"}


def test_one_series_given_twice_fails_its_collector() -> None:
    """It would spoil the page for all."""
    reading = HostCollectors([Stub("good", lambda: good() + good())], FakeClock()).collect()
    assert reading.samples == ()
    assert reading.health[0].errors["malformed"] == 1


def test_a_taken_name_is_refused() -> None:
    """Of a collector, and of a metric."""
    with pytest.raises(NameTakenError, match="good"):
        HostCollectors([Stub("good", good), Stub("good", good)], FakeClock())
    other = Stub("other", good)
    other.metrics = Stub("good", good).metrics
    with pytest.raises(NameTakenError, match="heatsoak_host_good"):
        HostCollectors([Stub("good", good), other], FakeClock())


def test_each_collector_of_the_vocabulary_is_built_and_can_be_switched_off() -> None:
    """The words in the settings are the collectors there are."""
    names = get_args(HostCollector)
    assert sorted(row.name for row in build(HostSettings(), FakeClock()).collect().health) == sorted(names)
    assert build(HostSettings(off=names), FakeClock()).collect().health == ()
    assert [row.name for row in build(HostSettings(off=names[1:]), FakeClock()).collect().health] == [names[0]]


def test_this_machine_is_read_without_a_failure() -> None:
    """The kernel under the tests: every sample has its definition and no collector fails."""
    reading = build(HostSettings(), FakeClock()).collect()
    definitions = {metric.name: metric for metric in HOST_METRICS}
    assert [row.name for row in reading.health if row.ok is False] == []
    assert all(len(sample.labels) == len(definitions[sample.name].labels) for sample in reading.samples)
    assert len(reading.samples) > 20


def test_a_proc_without_diskstats_costs_the_disks_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    """An empty tree fails what reads it, each for itself."""
    root = str(tmp_path_factory.mktemp("empty"))
    reading = build(HostSettings(proc_root=root, sys_root=root), FakeClock()).collect()
    state = {row.name: row.ok for row in reading.health}
    assert state["shm"] is True
    assert state["disk"] is state["cpu"] is state["network"] is False
    assert state["pressure"] is None
