"""Tests of agent.verdicts.rules.pcie_link."""

import pytest

from agent.verdicts.rules import pcie_link
from tests.support.snapshots import busy_values, h200_values
from tests.support.views import THRESHOLDS, steady, view_of


@pytest.mark.parametrize(
    ("values", "cause"), [({"pcie_width_lanes": 8.0}, "width"), ({"pcie_generation": 3.0}, "generation")]
)
def test_a_link_that_stays_low_under_load_is_degraded(values: dict[str, float], cause: str) -> None:
    """Width before generation."""
    conclusion = pcie_link.judge(view_of(steady(busy_values(**values))), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("degraded", cause)


@pytest.mark.parametrize(
    "values",
    [
        h200_values(pcie_generation=1.0),
        busy_values(),
        busy_values(pcie_generation=4.0, pcie_generation_max=4.0),
        busy_values(utilization_ratio=0.3, pcie_generation=2.0),
    ],
)
def test_idle_full_slow_slots_and_light_work_are_fine(values: dict[str, float]) -> None:
    """A link trains down to save power, and a slot is what it is."""
    assert pcie_link.judge(view_of(steady(values)), THRESHOLDS) is None


def test_one_reading_at_full_speed_clears_the_link() -> None:
    """The reading may be older than the load."""
    rows = [*[busy_values(pcie_generation=1.0)] * 20, *[busy_values()] * 10, *[busy_values(pcie_generation=1.0)] * 10]

    assert pcie_link.judge(view_of(rows), THRESHOLDS) is None


@pytest.mark.parametrize("missing", ["pcie_generation", "pcie_generation_max", "utilization_ratio"])
def test_what_is_not_read_is_not_judged(missing: str) -> None:
    """A card in a virtual machine may not tell."""
    values = busy_values(pcie_generation=1.0)
    del values[missing]

    assert pcie_link.judge(view_of(steady(values)), THRESHOLDS) is None
