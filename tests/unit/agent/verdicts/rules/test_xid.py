"""Tests of agent.verdicts.rules.xid."""

import msgspec
import pytest

from agent.config.settings import XidSettings
from agent.verdicts.rules import xid
from agent.verdicts.view import CardView, Conclusion
from tests.support.snapshots import TAKEN_WALL_S, busy_values
from tests.support.views import THRESHOLDS, view_of


def after(*events: tuple[int, float], seconds: int = 120) -> CardView:
    """Return a card on which codes came so many seconds after the start."""
    rows = []
    for n in range(seconds):
        came = [(code, at_s) for code, at_s in events if at_s <= n]
        row = busy_values()
        for key in ("xid_last_code", "xid_last_timestamp_seconds"):
            row.pop(key, None)
        if came:
            row |= {"xid_last_code": float(came[-1][0]), "xid_last_timestamp_seconds": TAKEN_WALL_S + came[-1][1]}
        rows.append(row)
    return view_of(rows)


def judged(*events: tuple[int, float], seconds: int = 120) -> Conclusion | None:
    """Return the rule's answer."""
    return xid.judge(after(*events, seconds=seconds), THRESHOLDS)


@pytest.mark.parametrize("code", [48, 79, 95, 119])
def test_a_serious_code_makes_a_card_faulty_at_once(code: int) -> None:
    """The driver does not say such a thing twice."""
    conclusion = judged((code, 118))

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("faulty", f"xid_{code}")


@pytest.mark.parametrize("code", [13, 31, 43, 45])
def test_an_applications_fault_is_no_fault_of_the_card(code: int) -> None:
    """It is mentioned."""
    conclusion = judged((code, 100))

    assert conclusion is not None
    assert (conclusion.state, conclusion.suspect) == ("ok", False)


@pytest.mark.parametrize("code", [74, 4711])
def test_doubtful_and_unlisted_codes_ask_for_a_probe(code: int) -> None:
    """Neither ignored nor blamed."""
    conclusion = judged((code, 100))

    assert conclusion is not None
    assert (conclusion.state, conclusion.suspect) == ("ok", True)


def test_a_later_harmless_code_does_not_hide_a_serious_one() -> None:
    """The driver's clean-up follows every crash."""
    conclusion = judged((48, 50), (45, 52), (13, 100))

    assert conclusion is not None
    assert conclusion.cause == "xid_48"
    assert conclusion.evidence["events"] == 3


def test_a_code_is_an_event_and_falls_silent() -> None:
    """After its time the card is judged by what it is now."""
    view = after((48, 10))
    later = msgspec.structs.replace(view, now_wall_s=view.now_wall_s + 3600)

    assert xid.judge(view, THRESHOLDS) is not None
    assert xid.judge(later, THRESHOLDS) is None


def test_a_code_can_be_left_out() -> None:
    """By the operator."""
    limits = msgspec.structs.replace(THRESHOLDS, xid=XidSettings(off=(48,)))

    assert xid.judge(after((48, 10)), limits) is None


def test_no_code_no_finding() -> None:
    """A card without events."""
    assert judged() is None


def test_every_entry_says_what_to_do() -> None:
    """The table reads as sentences, and holds the codes that matter most."""
    table = xid.table()

    assert {13, 31, 43, 45, 48, 63, 64, 74, 79, 94, 95, 119, 120} <= table.keys()
    assert all(entry.meaning.endswith(".") and entry.next_action.endswith(".") for entry in table.values())
