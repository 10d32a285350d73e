"""Tests of agent.verdicts.rules.probe_environment."""

import msgspec
import pytest

from agent.model.probe import ProbeRecord
from agent.model.vocabulary import PROBE_REASONS, ProbeStatus
from agent.verdicts.rules import probe_environment
from agent.verdicts.view import Conclusion
from tests.support.nodes import node_of
from tests.support.records import record
from tests.support.views import THRESHOLDS, view_of


def judged(*cards: tuple[ProbeRecord, ...]) -> Conclusion | None:
    """Return the rule's answer for cards with these probes."""
    views = [msgspec.structs.replace(view_of([{}], index=n), probes=probes) for n, probes in enumerate(cards)]
    return probe_environment.judge(node_of(views), THRESHOLDS)


def failing(reason: str = "cuda_init_failed", status: ProbeStatus = "error") -> tuple[ProbeRecord, ...]:
    """Return two runs that failed after one that did not."""
    return record(0), record(3600, status=status, reason=reason), record(7200, status=status, reason=reason)


def test_what_fails_on_every_card_is_the_environment() -> None:
    """One alarm, and no card is blamed."""
    conclusion = judged(failing(), failing())

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("probe_environment_broken", "cuda_init_failed")
    assert conclusion.next_action.startswith("Reload the driver's modules")


def test_a_missing_library_is_certain_after_one_run_on_one_card() -> None:
    """The others would say the same, and those not probed count for nothing."""
    conclusion = judged((record(0, status="error", reason="missing_library:libcusolver.so.11"),), (), (skipped(),))

    assert conclusion is not None
    assert conclusion.cause == "missing_library"


def test_on_the_cpu_too_a_missing_tensorflow_is_the_environment() -> None:
    """A node without a card whose probes run on the CPU says what they lack."""
    lacking = msgspec.structs.replace(record(0, status="error", reason="tensorflow_missing"), uuid="cpu", gpu=None)
    conclusion = probe_environment.judge(msgspec.structs.replace(node_of([]), probes=(lacking,)), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("probe_environment_broken", "tensorflow_missing")
    assert "`pip install 'heatsoak[cpu]'`" in conclusion.next_action


def skipped() -> ProbeRecord:
    """Return a probe that did not run."""
    return record(10, status="skipped", reason="busy")


@pytest.mark.parametrize(
    "cards",
    [
        (),
        ((),),
        ((record(0),),),
        (failing(), (record(0), record(7200))),
        (failing("oom"), failing("oom")),
        (failing("deadline", "timeout"),),
        ((record(0), record(3600, status="error", reason="crashed:SIGSEGV")),),
    ],
    ids=["no card", "no probe", "fine", "one card only", "no memory", "too slow", "one crash"],
)
def test_everything_else_is_not(cards: tuple[tuple[ProbeRecord, ...], ...]) -> None:
    """Environment broken, skipped, degraded, lost and unknown are five different things."""
    assert judged(*cards) is None


def test_its_reasons_are_words_of_the_vocabulary() -> None:
    """A reason that no probe gives would never be found."""
    assert set(PROBE_REASONS["error"]) >= probe_environment.REASONS
