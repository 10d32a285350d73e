"""How records of one child are believed, and what stops a benchmark."""

import pytest

from agent.bench.plan import plan
from agent.bench.runner import good_start, is_blocked, outcome_of, pending
from agent.model.vocabulary import ProbeStatus
from tests.unit.agent.bench.results import bench_result, training

GOOD = training(16)
OOM = training(64, status="error", reason="oom:805306368")
CRASH = training(64, status="error", reason="crashed:SIGABRT")
NOT_OFFERED = training(64, status="skipped", reason="unsupported")


def test_what_follows_a_failure_is_left_to_a_fresh_child() -> None:
    """The failure itself counts; a lack of memory only where the child was fresh."""
    assert good_start([GOOD, GOOD]) == 2
    assert good_start([GOOD, CRASH, CRASH]) == 2
    assert good_start([GOOD, OOM, GOOD]) == 1
    assert good_start([OOM, GOOD]) == 1
    assert good_start([NOT_OFFERED, GOOD, OOM]) == 2
    assert good_start([GOOD, NOT_OFFERED, GOOD]) == 3


def test_only_a_lack_of_memory_bounds_a_search() -> None:
    """What is not offered at all ends it."""
    assert [outcome_of(record) for record in (GOOD, OOM, CRASH, NOT_OFFERED)] == ["fits", "oom", "failed", "failed"]


@pytest.mark.parametrize(
    ("status", "reason", "blocked"),
    [
        ("skipped", "foreign_process", True),
        ("skipped", "host_memory", True),
        ("skipped", "unsupported", False),
        ("aborted", "shutting_down", True),
        ("aborted", "gpu_lost", True),
        ("error", "missing_library:libcusolver.so.11", True),
        ("error", "tensorflow_missing", True),
        ("error", "oom:1", False),
        ("timeout", "deadline", False),
        ("wrong_answer", "exact_mismatch", False),
    ],
)
def test_circumstances_stop_a_benchmark_and_findings_do_not(status: ProbeStatus, reason: str, *, blocked: bool) -> None:
    """A card in use says nothing of the card; a lack of memory does."""
    assert is_blocked(training(64, status=status, reason=reason)) is blocked


def test_steps_that_are_there_are_not_made_again() -> None:
    """By name, whatever came of them."""
    steps = plan("quick", "cpu")
    result = bench_result({steps[1].name: [CRASH]})
    assert [step.name for step in pending(result, steps)] == [steps[0].name, *(step.name for step in steps[2:])]
