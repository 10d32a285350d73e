"""Which record of each kind is the last one worth showing."""

import msgspec
import pytest

from agent.model.reference import series_of
from agent.model.vocabulary import ProbeStatus
from agent.probes.history import LastRecords
from tests.support.records import START_S, record


def test_newer_values_replace_older_ones_of_their_kind() -> None:
    """One record for each shape, whatever its age."""
    last = LastRecords()
    for seconds, shape in ((0, "a"), (1, "b"), (2, "a")):
        last.add(record(START_S + seconds, shape=shape))
    assert [(r.result.shape, r.wall_s - START_S) for r in last.all()] == [("a", 2), ("b", 1)]


def test_a_failure_stands_beside_the_last_good_value() -> None:
    """The value keeps its age, the failure its reason."""
    last = LastRecords()
    last.add(record(START_S))
    last.add(record(START_S + 1, status="error", reason="oom", shape=""))
    last.add(record(START_S + 2, status="timeout", reason="deadline", shape=""))
    assert [(r.result.status, r.wall_s - START_S) for r in last.all()] == [("ok", 0), ("timeout", 2)]


def test_a_good_value_ends_the_failure() -> None:
    """What works again is no longer failed."""
    last = LastRecords()
    last.add(record(START_S, status="error", reason="oom", shape=""))
    last.add(record(START_S + 1))
    assert [r.result.status for r in last.all()] == ["ok"]


@pytest.mark.parametrize(("status", "reason"), [("skipped", "busy"), ("aborted", "tenant_arrived")])
def test_runs_that_were_not_made_leave_everything_in_place(status: ProbeStatus, reason: str) -> None:
    """A busy card says nothing new about itself."""
    last = LastRecords()
    last.add(record(START_S))
    last.add(record(START_S + 1, status=status, reason=reason))
    assert [r.result.status for r in last.all()] == ["ok"]


def test_cards_do_not_mix() -> None:
    """Each card keeps its own."""
    last = LastRecords()
    last.add(record(START_S, uuid="GPU-b", gpu=1))
    last.add(msgspec.structs.replace(record(START_S), uuid="GPU-a"))
    assert [r.uuid for r in last.all()] == ["GPU-a", "GPU-b"]


def test_the_latest_values_of_each_figure_are_kept_for_its_line() -> None:
    """Oldest first, a bounded number, failures left out; what was handed out does not change."""
    last = LastRecords()
    assert last.values() == {}
    last.add(record(START_S, 1.0))
    before = last.values()
    last.add(record(START_S + 1, status="error", reason="oom"))
    for number in range(2, 60):
        last.add(record(START_S + number, float(number)))
    ((key, values),) = last.values().items()
    assert key == ("GPU-a", series_of(record(START_S).result))
    assert values == tuple(float(number) for number in range(20, 60))
    assert list(before.values()) == [(1.0,)]
