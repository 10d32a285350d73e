"""Tests of agent.verdicts.rules.row_remap."""

import pytest

from agent.verdicts.rules import row_remap
from tests.support.snapshots import busy_values
from tests.support.views import THRESHOLDS, steady, view_of


@pytest.mark.parametrize(
    ("values", "cause"),
    [
        ({"row_remap_failed": 1.0}, "failed"),
        ({"row_remap_pending": 1.0}, "pending"),
        ({"row_remap_failed": 1.0, "row_remap_pending": 1.0}, "failed"),
    ],
)
def test_a_row_that_waits_or_cannot_be_remapped_is_a_fault(values: dict[str, float], cause: str) -> None:
    """The worse of the two is named."""
    conclusion = row_remap.judge(view_of(steady(busy_values(**values))), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("faulty", cause)


def test_rows_remapped_in_the_past_are_none() -> None:
    """Remapping worked."""
    assert row_remap.judge(view_of(steady(busy_values(remapped_rows_uncorrectable=3.0))), THRESHOLDS) is None
