"""How pairs of cards are linked."""

from pathlib import Path

import pytest

from agent.bench.topology import topology
from agent.host.files import Tree
from agent.model.snapshot import Card, CardIdentity


def card(index: int, bus_id: str, links: float | None = None) -> Card:
    """Return a card with so many NVLinks."""
    values = {} if links is None else {"nvlink_active_links": links}
    return Card(CardIdentity(index, f"GPU-{index}", pci_bus_id=bus_id), values)


@pytest.fixture
def sys(tmp_path: Path) -> Tree:
    """Return a machine with two host bridges, and a switch below the first one."""
    places = {
        "0000:03:00.0": "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0",
        "0000:04:00.0": "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0",
        "0000:00:06.0": "pci0000:00/0000:00:06.0",
        "0000:81:00.0": "pci0000:80/0000:80:01.0/0000:81:00.0",
    }
    devices = tmp_path / "bus/pci/devices"
    devices.mkdir(parents=True)
    for bus_id, place in places.items():
        real = tmp_path / "devices" / place
        real.mkdir(parents=True, exist_ok=True)
        (real / "numa_node").write_text("1\n" if "0000:80" in place else "0\n")
        (devices / bus_id).symlink_to(Path("../../../devices") / place)
    return Tree(str(tmp_path))


@pytest.mark.parametrize(
    ("one", "other", "way"),
    [
        ("0000:03:00.0", "0000:04:00.0", "PCIe through a switch below pci0000:00"),
        ("0000:03:00.0", "0000:00:06.0", "PCIe through host bridge pci0000:00"),
        ("0000:03:00.0", "0000:81:00.0", "PCIe between NUMA nodes"),
        ("0000:03:00.0", "0000:99:00.0", "PCIe path not known"),
    ],
)
def test_the_nearest_common_bridge_is_named(sys: Tree, one: str, other: str, way: str) -> None:
    """From the kernel's own tree."""
    (line,) = topology((card(0, one), card(1, other)), sys)
    assert line == f"gpu 0 - gpu 1: NVLink not known, {way}"


def test_nvlinks_are_counted_as_far_as_both_cards_have_them(sys: Tree) -> None:
    """One line for each pair."""
    three = (card(0, "0000:03:00.0", 18), card(1, "0000:04:00.0", 12), card(2, "0000:81:00.0", 0))
    lines = topology(three, sys)
    assert [line.partition(",")[0] for line in lines] == [
        "gpu 0 - gpu 1: 12 NVLinks each",
        "gpu 0 - gpu 2: no NVLink",
        "gpu 1 - gpu 2: no NVLink",
    ]
    assert topology(three[:1], sys) == ()
