"""Tests of agent.verdicts.rules.gpu_missing."""

from agent.verdicts.rules import gpu_missing
from tests.support.nodes import node_of
from tests.support.snapshots import identity
from tests.support.views import THRESHOLDS, steady, view_of

CARDS = [view_of(steady({"power_watts": 1.0}, 3), index=n) for n in range(2)]
BUS_IDS = tuple(identity(n).pci_bus_id for n in range(3))


def test_a_card_on_the_bus_that_the_driver_does_not_name_is_missing() -> None:
    """Its address is named."""
    conclusion = gpu_missing.judge(node_of(CARDS, pci_bus_ids=BUS_IDS), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.evidence) == ("gpu_missing", {"expected_gpus": 3, "present_gpus": 2})
    assert BUS_IDS[2] in conclusion.summary
    assert BUS_IDS[0] not in conclusion.summary


def test_a_card_of_the_inventory_that_left_the_bus_is_missing() -> None:
    """Where the bus no longer knows it."""
    inventory = tuple(identity(n) for n in range(3))
    conclusion = gpu_missing.judge(node_of(CARDS, pci_bus_ids=BUS_IDS[:2], inventory=inventory), THRESHOLDS)

    assert conclusion is not None
    assert BUS_IDS[2] in conclusion.summary


def test_fewer_than_the_configuration_says_are_missing() -> None:
    """Even where nobody knows an address."""
    conclusion = gpu_missing.judge(node_of(CARDS, expected_gpus=8), THRESHOLDS)

    assert conclusion is not None
    assert conclusion.evidence["expected_gpus"] == 8
    assert "address unknown" in conclusion.summary


def test_a_full_node_misses_nothing() -> None:
    """More cards than the configuration says are not missing either."""
    inventory = tuple(identity(n) for n in range(2))

    assert gpu_missing.judge(node_of(CARDS, pci_bus_ids=BUS_IDS[:2], inventory=inventory), THRESHOLDS) is None
    assert gpu_missing.judge(node_of(CARDS, expected_gpus=1), THRESHOLDS) is None
    assert gpu_missing.judge(node_of(), THRESHOLDS) is None


def test_a_card_that_moved_to_another_slot_is_there() -> None:
    """Its UUID tells."""
    moved = identity(0).__class__(index=0, uuid=identity(0).uuid, pci_bus_id="0000:f0:00.0")
    inventory = (moved, identity(1))

    assert gpu_missing.judge(node_of(CARDS, inventory=inventory), THRESHOLDS) is None


def test_five_ticks_confirm_it_and_a_driver_that_is_down_explains_it() -> None:
    """Cards are taken up one after another."""
    assert gpu_missing.judge(node_of(CARDS, pci_bus_ids=BUS_IDS, ticks=4), THRESHOLDS) is None
    assert gpu_missing.judge(node_of(CARDS, pci_bus_ids=BUS_IDS, present=3), THRESHOLDS) is None
    assert gpu_missing.judge(node_of([], up=False, pci_bus_ids=BUS_IDS), THRESHOLDS) is None
