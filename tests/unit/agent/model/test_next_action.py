"""Every reason of a probe has something to do about it that is no repetition of the fault."""

import msgspec
import pytest

from agent.model.next_action import ACTIONS, ON_CPU, UNKNOWN, next_action, sentence
from agent.model.probe import ProbeRecord
from agent.model.vocabulary import PROBE_REASONS, ProbeStatus
from tests.support.records import record

REASONS = [(status, reason) for status, reasons in PROBE_REASONS.items() for reason in reasons]


def on_cpu(one: ProbeRecord) -> ProbeRecord:
    """Return a record as if it were made on the CPU."""
    return msgspec.structs.replace(one, uuid="cpu", gpu=None)


def test_the_table_holds_every_documented_reason_and_no_other() -> None:
    """A new reason comes with what to do about it."""
    assert set(ACTIONS) == {reason for _, reason in REASONS}
    assert set(ON_CPU) < set(ACTIONS)


@pytest.mark.parametrize(("status", "reason"), REASONS)
def test_an_action_is_a_clause_that_does_not_repeat_the_fault(status: ProbeStatus, reason: str) -> None:
    """Small at its beginning, no stop at its end, and something else than what the reason means."""
    failed = record(0.0, status=status, reason=f"{reason}:value")
    for action in (next_action(failed), next_action(on_cpu(failed))):
        assert action
        assert action[0].islower()
        assert not action.endswith(".")
        assert action != PROBE_REASONS[status][reason]


def test_the_cpu_is_advised_what_a_cpu_needs() -> None:
    """No CUDA for a machine without a card."""
    missing = record(0.0, status="error", reason="tensorflow_missing")
    assert "heatsoak[gpu]" in next_action(missing)
    assert "heatsoak[cpu]" in next_action(on_cpu(missing))


def test_a_good_record_needs_nothing_and_an_unknown_reason_the_doctor() -> None:
    """State files of other versions are read too."""
    assert next_action(record(0.0)) == ""
    assert next_action(record(0.0, status="error", reason="of_another_version")) == UNKNOWN


def test_an_action_is_made_a_sentence() -> None:
    """As verdicts write theirs."""
    assert sentence("see what it says") == "See what it says."
