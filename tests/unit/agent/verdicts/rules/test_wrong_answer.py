"""Wrong answers make a card faulty at once, and for long."""

from collections.abc import Sequence

import msgspec
import pytest

from agent.config.settings import VerdictSettings
from agent.model.probe import ProbeRecord
from agent.verdicts.rules.wrong_answer import judge
from agent.verdicts.view import CardView
from tests.support.histories import card_view, hourly, node
from tests.support.records import DAY_S, HOUR_S, START_S, record


def wrong(hour: float = 5.0, uuid: str = "GPU-a", **changes: object) -> ProbeRecord:
    """Return a probe that computed a wrong answer."""
    status: dict[str, object] = {"status": "wrong_answer", "reason": "exact_mismatch"}
    return record(START_S + hour * HOUR_S, uuid=uuid, **(status | changes))  # type: ignore[arg-type]


def verdict(view: CardView) -> tuple[str, str, bool] | None:
    """Return state, cause and whether another probe is asked for."""
    found = judge(view, VerdictSettings())
    return (found.state, found.cause, found.suspect) if found else None


@pytest.mark.parametrize("reason", ["exact_mismatch", "bound_exceeded", "not_finite", "memory_mismatch"])
def test_one_wrong_answer_is_faulty_and_asks_for_more_evidence(reason: str) -> None:
    """Arithmetic has no noise to wait out."""
    assert verdict(card_view([*hourly([0.0] * 5), wrong(reason=reason)])) == ("faulty", reason, True)


def test_right_answers_since_do_not_clear_it_within_a_week() -> None:
    """Such faults come and go."""
    runs = [wrong(0.0), *hourly([0.0] * 100, start_s=START_S + HOUR_S)]
    assert verdict(card_view(runs)) == ("faulty", "exact_mismatch", True)
    assert verdict(card_view(runs, now_wall_s=START_S + 8 * DAY_S)) is None


def test_three_are_evidence_enough() -> None:
    """No further probe is spent on it."""
    assert verdict(card_view([wrong(hour) for hour in range(3)])) == ("faulty", "exact_mismatch", False)


def test_other_endings_are_not_wrong_answers() -> None:
    """A crash, a skip or a slow run says nothing about arithmetic."""
    other = [record(START_S, status="error", reason="oom"), record(START_S, status="skipped", reason="busy")]
    assert verdict(card_view([*other, *hourly([-0.5])])) is None


def nodes(*histories: Sequence[ProbeRecord]) -> list[tuple[str, str, bool] | None]:
    """Return the verdict of each card of a node."""
    return [verdict(view) for view in node(*histories)]


def test_wrong_on_half_of_the_cards_is_the_softwares_doing() -> None:
    """A broken build must not send eight cards back."""
    broken = [[wrong(uuid=f"GPU-{n}")] for n in range(4)]
    good = [hourly([0.0] * 5, uuid=f"GPU-{n}") for n in range(4, 8)]
    assert nodes(*broken, *good)[0] == ("unknown", "on_other_cards_too", True)
    assert nodes(*broken[:3], *good)[0] == ("faulty", "exact_mismatch", True)
    assert nodes(broken[0], good[0])[0] == ("faulty", "exact_mismatch", True)


def test_two_cards_wrong_under_different_software_are_two_faults() -> None:
    """Nothing common explains them."""
    other = msgspec.structs.replace(
        wrong(uuid="GPU-b"), environment=msgspec.structs.replace(wrong().environment, tensorflow="2.9.0")
    )
    assert nodes([wrong()], [other])[0] == ("faulty", "exact_mismatch", True)
