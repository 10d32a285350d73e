"""Which card a pod's devices are."""

import pytest

from agent.allocation.pod_resources import allocations, holdings
from agent.model.allocation import Allocation
from tests.support.kubelet import pod, response
from tests.support.snapshots import identity, uuid_of

_CARDS = [identity(index) for index in range(3)]


@pytest.mark.parametrize(
    ("device", "index"),
    [
        (uuid_of(1), 1),
        (f"{uuid_of(1)}::3", 1),
        ("nvidia2", 2),
        ("nvidia2/gi1", 2),
        ("nvidia12", None),
        ("MIG-6a0ad1ba-0000-4000-8000-000000000001", None),
        ("GPU-of-another-node", None),
        ("", None),
    ],
)
def test_every_way_to_name_a_card_is_understood(device: str, index: int | None) -> None:
    """By UUID, shared in time, and by index as clouds do; slices and strangers name no card."""
    found = allocations(holdings(response(pod("a", [device]))), _CARDS)
    expected = [] if index is None else [Allocation(uuid_of(index), "ml", "a", "train")]
    assert list(found) == expected


def test_devices_of_others_are_no_cards() -> None:
    """Only NVIDIA's resources count, whatever the id."""
    assert holdings(response(pod("a", [uuid_of(0)], resource="example.com/nic"))) == ()


def test_claims_of_dynamic_allocation_are_read() -> None:
    """A claim served by NVIDIA's driver names the card; another driver's does not."""
    wire = response(pod("a", [], claims=[("gpu.nvidia.com", "gpu-2"), ("nic.example.com", "gpu-1")]))
    assert [one.uuid for one in allocations(holdings(wire), _CARDS)] == [uuid_of(2)]


def test_a_shared_card_has_every_holder_once() -> None:
    """Two pods on one card, one of them with two shares of it: two holders."""
    wire = response(pod("a", [f"{uuid_of(0)}::0", f"{uuid_of(0)}::1"]), pod("b", [f"{uuid_of(0)}::2"]))
    assert [one.pod for one in allocations(holdings(wire), _CARDS)] == ["a", "b"]
