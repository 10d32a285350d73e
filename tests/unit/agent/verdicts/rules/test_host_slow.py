"""One verdict for a node whose cards fell together."""

import pytest

from agent.config.settings import VerdictSettings
from agent.model.snapshot import NvmlHealth
from agent.verdicts.rules.host_slow import RULE, judge
from agent.verdicts.view import NodeView
from tests.support.histories import card_view, hourly


@pytest.mark.parametrize(("slow", "holds"), [(0, False), (1, False), (2, True), (8, True)])
def test_two_or_more_cards_that_fell_together_make_the_node_slow(slow: int, holds: bool) -> None:
    """The cards' own findings are replaced by this one."""
    cards = tuple(
        card_view(hourly([0.0]), held=frozenset({"fell_together"} if number < slow else ())) for number in range(8)
    )
    found = judge(NodeView(now_monotonic_s=1.0, now_wall_s=1.0, nvml=NvmlHealth(), cards=cards), VerdictSettings())
    assert (found is not None) == holds
    if found is not None:
        assert (found.state, found.evidence["cards_slow"]) == ("host_slow", float(slow))
    assert RULE.covers == ("fell_together",)
