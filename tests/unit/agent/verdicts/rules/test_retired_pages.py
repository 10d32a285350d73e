"""Tests of agent.verdicts.rules.retired_pages."""

from agent.verdicts.rules import retired_pages
from tests.support.snapshots import busy_values
from tests.support.views import THRESHOLDS, steady, view_of


def test_a_full_table_is_a_fault() -> None:
    """Both causes count together."""
    values = busy_values(retired_pages_single_bit=40.0, retired_pages_double_bit=20.0)
    conclusion = retired_pages.judge(view_of(steady(values)), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("faulty", "too_many")
    assert conclusion.evidence == {"pages": 60, "threshold_pages": 60}


def test_a_page_that_waits_is_a_fault() -> None:
    """A reset puts it aside."""
    conclusion = retired_pages.judge(view_of(steady(busy_values(retired_pages_pending=1.0))), THRESHOLDS)

    assert conclusion is not None
    assert conclusion.cause == "pending"


def test_some_retired_pages_and_cards_without_any_are_fine() -> None:
    """Newer cards remap rows instead."""
    some = busy_values(retired_pages_single_bit=12.0, retired_pages_double_bit=2.0)

    assert retired_pages.judge(view_of(steady(some)), THRESHOLDS) is None
    assert retired_pages.judge(view_of(steady({"power_watts": 1.0})), THRESHOLDS) is None


def test_one_garbled_count_is_no_full_table() -> None:
    """It must stand in two readings."""
    rows = [*steady(busy_values(retired_pages_single_bit=1.0)), *steady(busy_values(retired_pages_single_bit=9e9), 10)]

    assert retired_pages.judge(view_of(rows), THRESHOLDS) is None
