"""What is known of who holds a card, for how long, and what goes wrong."""

from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from agent.allocation.watch import STALE_S, AllocationWatch
from agent.config.settings import AllocationSettings
from agent.model.allocation import Allocation
from agent.model.snapshot import GpuProcess, Snapshot
from tests.support.clock import FakeClock
from tests.support.snapshots import card, uuid_of
from tests.support.trees import make_tree

_SNAPSHOT = Snapshot(0.0, 0.0, cards=(card(0), card(1)))


def _watch(folder: Path, clock: FakeClock) -> AllocationWatch:
    watch = AllocationWatch(AllocationSettings(slurm=True, jobs_dir=str(folder)), None, clock)
    watch.observe(_SNAPSHOT)
    return watch


def test_switched_off_every_card_is_free_and_nothing_is_told() -> None:
    """The default: no source, no thread, no health row."""
    watch = AllocationWatch(AllocationSettings(), None, FakeClock())
    watch.start()
    watch.observe(_SNAPSHOT)
    assert (watch.given_away(), watch.latest(), watch.health()) == (frozenset(), (), ())
    watch.stop(1.0)


def test_before_the_first_answer_nobody_knows(tmp_path: Path) -> None:
    """None, which is not the same as free."""
    watch = _watch(tmp_path, FakeClock())
    assert (watch.given_away(), watch.latest()) == (None, ())


def test_an_answer_stands_until_it_is_stale(tmp_path: Path) -> None:
    """Failures count and are logged once; the last answer is believed for three periods."""
    clock = FakeClock()
    folder = tmp_path / "jobs"
    make_tree(folder, {"7": "1"})
    watch = _watch(folder, clock)
    watch.poll()
    assert watch.latest() == (Allocation(uuid_of(1), job="7"),)
    assert watch.given_away() == frozenset({uuid_of(1)})
    folder.rename(tmp_path / "aside")
    folder.write_text("")
    with capture_logs() as log:
        watch.poll()
        watch.poll()
        clock.advance(STALE_S)
        assert watch.given_away() == frozenset({uuid_of(1)})
        clock.advance(1.0)
        assert (watch.given_away(), watch.latest()) == (None, ())
        folder.unlink()
        (tmp_path / "aside").rename(folder)
        watch.poll()
    assert watch.given_away() == frozenset({uuid_of(1)})
    assert [entry["event"] for entry in log] == ["allocation_unknown", "allocation_known_again"]
    (health,) = watch.health()
    assert (health.ok, health.attempts, dict(health.errors)["jobs_dir"]) == (True, 4, 2)


def test_the_thread_asks_and_ends(tmp_path: Path) -> None:
    """Started with cards in sight it has an answer soon, and stop ends it."""
    clock = FakeClock()
    make_tree(tmp_path, {"7": "0"})
    watch = _watch(tmp_path, clock)
    watch.start()
    while watch.given_away() is None:
        pass
    watch.stop(5.0)
    assert watch.given_away() in (frozenset({uuid_of(0)}), None)


def test_jobs_of_processes_are_seen_where_ids_mean_something(tmp_path: Path) -> None:
    """With the host's /proc the job of a process counts; without it no process is looked at."""
    proc = make_tree(tmp_path / "proc", {"9/environ": "SLURM_JOB_ID=5"})
    jobs = tmp_path / "jobs"
    jobs.mkdir()
    busy = msgspec.structs.replace(card(0), processes=(GpuProcess(9, "compute"),))
    for tree, expected in ((proc, frozenset({uuid_of(0)})), (None, frozenset[str]())):
        watch = AllocationWatch(AllocationSettings(slurm=True, jobs_dir=str(jobs)), tree, FakeClock())
        watch.observe(Snapshot(0.0, 0.0, cards=(busy,)))
        watch.poll()
        assert watch.given_away() == expected


@pytest.mark.parametrize(
    ("allocation", "words"),
    [
        (Allocation("u", "ml", "a", "train"), "pod ml/a (container train)"),
        (Allocation("u", job="7"), "Slurm job 7"),
    ],
)
def test_a_holder_is_named_in_words(allocation: Allocation, words: str) -> None:
    """For summaries that people read."""
    assert allocation.holder == words
