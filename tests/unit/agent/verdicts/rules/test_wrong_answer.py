"""Tests of agent.verdicts.rules.wrong_answer."""

import msgspec

from agent.model.probe import ProbeRecord
from agent.verdicts.rules import wrong_answer
from agent.verdicts.view import Conclusion
from tests.support.records import record
from tests.support.views import THRESHOLDS, view_of


def judged(*records: ProbeRecord) -> Conclusion | None:
    """Return the rule's answer about a card with these probes."""
    last_s = max((one.wall_s for one in records), default=0.0)
    view = msgspec.structs.replace(view_of([{}]), probes=records, now_wall_s=last_s + 60)
    return wrong_answer.judge(view, THRESHOLDS)


def wrong(wall_s: float) -> ProbeRecord:
    """Return a probe that computed wrongly."""
    return record(wall_s, status="wrong_answer", reason="exact_mismatch")


def test_one_wrong_answer_has_the_card_probed_again() -> None:
    """It is mentioned, not condemned."""
    conclusion = judged(record(0), wrong(3600))

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause, conclusion.suspect) == ("ok", "once", True)


def test_two_wrong_answers_make_it_faulty() -> None:
    """Also with right ones between: such cards are wrong now and then."""
    conclusion = judged(wrong(0), *[record(3600.0 * n) for n in range(1, 10)], wrong(36000))

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause, conclusion.suspect) == ("faulty", "confirmed", False)


def test_right_answers_and_silence_are_nothing() -> None:
    """Errors and skips compute nothing."""
    assert (
        judged(record(0), record(1, status="skipped", reason="busy"), record(2, status="error", reason="oom")) is None
    )
    assert judged() is None
