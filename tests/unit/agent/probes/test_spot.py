"""A card judged by one run: by its own past, its peers, its model's floor, or not at all."""

from collections.abc import Sequence

import pytest

from agent.config.settings import DegradedSettings
from agent.model.probe import ProbeRecord
from agent.model.vocabulary import ProbeStatus
from agent.probes.spot import Spot, judge_spot
from tests.support.records import START_S, record, reference

UNKNOWN_MODEL = "NVIDIA Nothing"


def judged(one: ProbeRecord, *, references: bool = True, peers: Sequence[ProbeRecord] = ()) -> Spot:
    """Judge a record."""
    return judge_spot(one, UNKNOWN_MODEL, (reference(),) if references else (), peers, DegradedSettings())


def peers(*values: float) -> list[ProbeRecord]:
    """Return records of other cards."""
    return [record(START_S, value, uuid=f"GPU-{index}", gpu=index) for index, value in enumerate(values)]


@pytest.mark.parametrize(("value", "state"), [(660e12, "ok"), (700e12, "ok"), (640e12, "ok"), (630e12, "degraded")])
def test_own_reference_decides(value: float, state: str) -> None:
    """3.5 % below what the card once did is slow; above is never a fault."""
    spot = judged(record(START_S, value))
    assert (spot.state, spot.cause) == (state, "own_reference")
    assert spot.deviation == pytest.approx(value / 660e12 - 1)


def test_peers_decide_where_there_is_no_reference() -> None:
    """19.2 / 19.1 / 6.7 / 19.2 condemns exactly the third."""
    values = (192e12, 191e12, 67e12, 192e12)
    everyone = peers(*values)
    states = [
        judged(one, references=False, peers=[other for other in everyone if other is not one]).state for one in everyone
    ]
    assert states == ["ok", "ok", "degraded", "ok"]


def test_too_few_peers_tell_nothing() -> None:
    """With two others nobody knows what is usual."""
    assert judged(record(START_S), references=False, peers=peers(660e12, 660e12)).state == "unknown"


def test_peers_that_were_disturbed_do_not_count() -> None:
    """A contended run is no witness."""
    others = [record(START_S, 660e12, uuid=f"GPU-{index}", contended=True, judged=False) for index in range(5)]
    assert judged(record(START_S), references=False, peers=others).state == "unknown"


def test_a_value_without_comparison_is_never_healthy() -> None:
    """However high: nobody knows what is right."""
    spot = judged(record(START_S, 9e15), references=False)
    assert (spot.state, spot.cause) == ("unknown", "no_reference")
    assert "--allow-unknown" in spot.next_action


@pytest.mark.parametrize(
    ("status", "reason", "state"),
    [
        ("wrong_answer", "exact_mismatch", "faulty"),
        ("aborted", "gpu_lost", "lost"),
        ("error", "oom:1", "unknown"),
        ("error", "crashed:SIGSEGV", "unknown"),
        ("error", "tensorflow_missing", "unknown"),
        ("timeout", "deadline", "unknown"),
        ("skipped", "foreign_process", "unknown"),
    ],
)
def test_without_a_value_the_reason_speaks(status: ProbeStatus, reason: str, state: str) -> None:
    """Wrong answers and lost cards are bad; everything else is only not known."""
    spot = judged(record(START_S, status=status, reason=reason))
    assert (spot.state, spot.cause) == (state, reason)


def test_slowed_down_cards_are_throttled_not_degraded() -> None:
    """Heat is its own word."""
    spot = judged(record(START_S, 500e12, judged=False, throttle_share={"hw_thermal": 0.5}))
    assert (spot.state, spot.cause) == ("throttled", "hw_thermal")


def test_contended_runs_are_not_judged() -> None:
    """Somebody else was on the card."""
    spot = judged(record(START_S, 300e12, judged=False, contended=True))
    assert (spot.state, spot.cause) == ("unknown", "contended")


def test_every_bad_or_unknown_word_has_a_next_action() -> None:
    """Whoever reads it at night knows what to do."""
    for one in (
        record(START_S, 1e12),
        record(START_S, status="wrong_answer", reason="exact_mismatch"),
        record(START_S, status="timeout", reason="deadline"),
        record(START_S, status="skipped", reason="busy"),
    ):
        assert judged(one).next_action
