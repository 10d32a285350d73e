"""Pauses: how long they last, and that they outlive the agent."""

from agent.maintenance import Maintenance
from tests.support.clock import FakeClock


class _Documents:
    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    def load_document(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def save_document(self, name: str, data: bytes) -> None:
        self.kept[name] = data


def test_a_pause_runs_out_by_itself() -> None:
    """Paused for an hour: in for 3,599 s, out after 3,600."""
    clock = FakeClock()
    maintenance = Maintenance(_Documents(), clock)
    maintenance.pause(["GPU-1"], 3600.0)
    clock.advance(3599.0)
    assert maintenance.paused() == {"GPU-1"}
    clock.advance(1.0)
    assert maintenance.paused() == frozenset()


def test_a_pause_without_a_bound_lasts_until_resumed() -> None:
    """Only the named card comes back."""
    clock = FakeClock()
    maintenance = Maintenance(_Documents(), clock)
    maintenance.pause(["GPU-1", "GPU-2"], None)
    clock.advance(1e7)
    maintenance.resume(["GPU-1"])
    assert maintenance.paused() == {"GPU-2"}


def test_a_pause_outlives_the_agent_and_still_runs_out() -> None:
    """A restart after 10 of 60 minutes leaves 50, on another monotonic clock."""
    documents, clock = _Documents(), FakeClock(monotonic_s=5000.0, wall_s=1e9)
    Maintenance(documents, clock).pause(["GPU-1"], 3600.0)
    later = FakeClock(monotonic_s=10.0, wall_s=1e9 + 600.0)
    maintenance = Maintenance(documents, later)
    assert maintenance.paused() == {"GPU-1"}
    later.advance(3001.0)
    assert maintenance.paused() == frozenset()


def test_a_step_of_the_wall_clock_does_not_end_a_pause() -> None:
    """Forward by a day: the pause keeps its hour."""
    clock = FakeClock()
    maintenance = Maintenance(_Documents(), clock)
    maintenance.pause(["GPU-1"], 3600.0)
    clock.step_wall(86400.0)
    assert maintenance.paused() == {"GPU-1"}


def test_an_unreadable_document_pauses_nothing() -> None:
    """What another version or a bad disk left costs the pauses, not the start."""
    documents = _Documents()
    documents.kept["maintenance"] = b'{"x": 1}'
    assert Maintenance(documents, FakeClock()).paused() == frozenset()
