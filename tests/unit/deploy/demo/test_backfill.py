"""Rules that read rules are evaluated in the order in which they build on one another."""

import pytest

from deploy.demo.backfill import DemoError, levels
from tests.support.names import rules


def test_each_level_reads_only_what_levels_before_it_record() -> None:
    """All of our recording rules come, each once, after what they need."""
    every = rules("heatsoak-recording.yaml")
    seen: set[str] = set()
    for level in levels(every):
        for rule in level:
            needed = {other["record"] for other in every if other["record"] in rule["expr"]}
            assert needed <= seen, rule["record"]
        seen |= {rule["record"] for rule in level}
    assert seen == {rule["record"] for rule in every}


def test_a_circle_is_told() -> None:
    """Nothing could begin."""
    circle = [{"record": "a:b:c", "expr": "x:y:z"}, {"record": "x:y:z", "expr": "a:b:c"}]
    with pytest.raises(DemoError, match=r"a:b:c, x:y:z"):
        list(levels(circle))
