"""Tests of agent.verdicts.rules.pcie_replay."""

import pytest

from agent.verdicts.rules import pcie_replay
from agent.verdicts.view import Conclusion
from tests.support.snapshots import busy_values
from tests.support.views import THRESHOLDS, view_of


def judged(
    per_minute: float, generation: int = 5, lanes: int = 16, minutes: int = 15, held: bool = False
) -> Conclusion | None:
    """Return the rule's answer for a link with so many replays a minute."""
    link = {"pcie_generation_max": float(generation), "pcie_width_max_lanes": float(lanes)}
    rows = [busy_values(pcie_replays_total=5000 + per_minute * n / 6, **link) for n in range(6 * minutes)]
    names = frozenset({pcie_replay.NAME} if held else ())
    return pcie_replay.judge(view_of(rows, step_s=10.0, held=names), THRESHOLDS)


@pytest.mark.parametrize(
    ("per_minute", "generation", "lanes", "found"),
    [
        (100, 5, 16, True),
        (10, 5, 16, False),
        (10, 3, 4, True),
        (1, 3, 4, False),
        (0, 5, 16, False),
        (60, 6, 16, False),
    ],
)
def test_what_is_tolerated_grows_with_speed_and_lanes(
    per_minute: float, generation: int, lanes: int, found: bool
) -> None:
    """A fast wide link carries more bits, and so more errors within its rating."""
    conclusion = judged(per_minute, generation, lanes)

    assert (conclusion is not None) is found
    if conclusion is not None:
        assert (conclusion.state, conclusion.cause) == ("degraded", "errors")
        assert conclusion.evidence["replays"] > conclusion.evidence["threshold_replays"]


def test_ten_minutes_of_history_are_needed() -> None:
    """A counter that starts high is no rate."""
    assert judged(500, minutes=5) is None


def test_what_is_too_much_stays_so_until_half() -> None:
    """No flapping at the threshold."""
    assert judged(25) is None
    assert judged(25, held=True) is not None
