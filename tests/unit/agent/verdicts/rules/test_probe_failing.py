"""Tests of agent.verdicts.rules.probe_failing."""

import msgspec
import pytest

from agent.model.probe import ProbeRecord
from agent.model.vocabulary import ProbeStatus
from agent.verdicts.rules import probe_failing
from agent.verdicts.view import CardView, Conclusion
from tests.support.records import record
from tests.support.views import THRESHOLDS, view_of


def judged(*records: ProbeRecord) -> Conclusion | None:
    """Return the rule's answer about a card with these probes."""
    view: CardView = msgspec.structs.replace(view_of([{}]), probes=records)
    return probe_failing.judge(view, THRESHOLDS)


def failed(wall_s: float, reason: str = "oom", status: ProbeStatus = "error") -> ProbeRecord:
    """Return a probe that failed."""
    return record(wall_s, status=status, reason=reason)


def test_two_failed_runs_leave_a_card_unknown() -> None:
    """Neither healthy nor blamed; the reason's value after the colon is no label."""
    conclusion = judged(record(0), failed(3600, "oom:2.00GiB"), failed(7200, "oom:2.00GiB"))

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("unknown", "oom")


@pytest.mark.parametrize("reason", sorted(probe_failing.CERTAIN))
def test_some_reasons_are_certain_at_once(reason: str) -> None:
    """Another run would say the same."""
    assert judged(record(0), failed(3600, reason)) is not None


def test_one_failed_run_is_no_verdict() -> None:
    """Even where it asked for two measurements."""
    assert judged(record(0), failed(3600), failed(3605)) is None
    assert judged() is None


@pytest.mark.parametrize("status", ["skipped", "aborted"])
def test_what_says_nothing_changes_nothing(status: ProbeStatus) -> None:
    """Skips between two failures do not break the row, and make none."""
    silent = record(5000, status=status, reason="busy")

    assert judged(failed(3600), silent, failed(7200)) is not None
    assert judged(silent, silent) is None


@pytest.mark.parametrize("last", [record(9000), record(9000, status="wrong_answer", reason="exact_mismatch")])
def test_a_probe_that_measures_ends_the_row(last: ProbeRecord) -> None:
    """A wrong answer is an answer."""
    assert judged(failed(3600), failed(7200, status="timeout", reason="deadline"), last) is None


def test_the_order_in_which_records_come_does_not_matter() -> None:
    """History may be merged from two stores."""
    assert judged(failed(7200), record(9000), failed(3600)) is None
    assert judged(record(0), failed(7200), failed(3600)) is not None
