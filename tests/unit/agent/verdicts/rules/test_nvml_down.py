"""Tests of agent.verdicts.rules.nvml_down."""

import pytest

from agent.verdicts.rules import nvml_down
from tests.support.nodes import node_of
from tests.support.snapshots import identity, uuid_of
from tests.support.views import THRESHOLDS, view_of

BUS = ("0000:1b:00.0",)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        *nvml_down.CAUSES.items(),
        ("UNKNOWN", "other"),
        ("", "other"),
    ],
)
def test_a_driver_that_cannot_be_asked_is_one_fault_of_the_node(error: str, cause: str) -> None:
    """The error's name becomes a cause of a closed list."""
    conclusion = nvml_down.judge(node_of(up=False, error=error, pci_bus_ids=BUS), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("nvml_down", cause)


def test_a_node_without_a_card_is_a_normal_node() -> None:
    """Nothing on the bus, nothing expected, nothing in the inventory."""
    assert nvml_down.judge(node_of(up=False, error="LIBRARY_NOT_FOUND"), THRESHOLDS) is None
    assert nvml_down.judge(node_of(up=False, expected_gpus=0), THRESHOLDS) is None
    assert nvml_down.judge(node_of(up=False, expected_gpus=8), THRESHOLDS) is not None
    assert nvml_down.judge(node_of(up=False, inventory=(identity(0),)), THRESHOLDS) is not None


def test_three_ticks_confirm_it() -> None:
    """Two are a blip."""
    assert nvml_down.judge(node_of(up=False, pci_bus_ids=BUS, ticks=2), THRESHOLDS) is None
    assert nvml_down.judge(node_of(up=False, pci_bus_ids=BUS, ticks=3), THRESHOLDS) is not None
    assert nvml_down.judge(node_of(up=True, pci_bus_ids=BUS), THRESHOLDS) is None


def test_an_operator_who_paused_every_card_has_taken_the_driver() -> None:
    """One card that is not paused makes it a fault."""
    inventory = (identity(0), identity(1))
    both, one = frozenset({uuid_of(0), uuid_of(1)}), frozenset({uuid_of(0)})

    assert nvml_down.judge(node_of(up=False, inventory=inventory, paused=both), THRESHOLDS) is None
    assert nvml_down.judge(node_of(up=False, inventory=inventory, paused=one), THRESHOLDS) is not None
    assert nvml_down.judge(node_of([view_of([{}])], up=False, paused=one), THRESHOLDS) is None


@pytest.mark.parametrize("error", sorted(nvml_down.NOT_DOWN))
def test_a_driver_that_starts_hangs_or_is_left_alone_is_not_down(error: str) -> None:
    """Each of these is told elsewhere."""
    assert nvml_down.judge(node_of(up=False, error=error, pci_bus_ids=BUS), THRESHOLDS) is None
