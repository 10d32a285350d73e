"""How cards are linked: NVLinks as the driver counts them, and the way over PCIe as the kernel lays it out."""

from collections.abc import Sequence
from itertools import combinations, takewhile
from typing import Final

from agent.host.files import Tree
from agent.model.snapshot import Card

_DEVICES: Final = "bus/pci/devices"


def topology(cards: Sequence[Card], sys: Tree) -> tuple[str, ...]:
    """Return one line for each pair of cards.

    NVLinks are counted per card: where a switch joins them the driver does not say whom each link reaches.
    """
    return tuple(
        f"gpu {one.identity.index} - gpu {other.identity.index}: {_nvlinks(one, other)}, {_pcie(one, other, sys)}"
        for one, other in combinations(cards, 2)
    )


def _nvlinks(one: Card, other: Card) -> str:
    counts = [card.values.get("nvlink_active_links") for card in (one, other)]
    if None in counts:
        return "NVLink not known"
    links = min(int(count or 0) for count in counts)
    return f"{links} NVLinks each" if links else "no NVLink"


def _pcie(one: Card, other: Card, sys: Tree) -> str:
    paths = [_path(card, sys) for card in (one, other)]
    if not all(paths):
        return "PCIe path not known"
    shared = [bridge for bridge, _ in takewhile(lambda pair: pair[0] == pair[1], zip(*paths, strict=False))]
    if len(shared) > 1:
        return f"PCIe through a switch below {shared[0]}"
    if shared:
        return f"PCIe through host bridge {shared[0]}"
    nodes = {sys.read_or_none(f"{_DEVICES}/{card.identity.pci_bus_id}/numa_node") for card in (one, other)}
    return "PCIe between host bridges" if len(nodes) == 1 else "PCIe between NUMA nodes"


def _path(card: Card, sys: Tree) -> list[str]:
    """Return the bridges above a card, the host bridge first; empty where the kernel does not show it."""
    try:
        parts = sys.link(f"{_DEVICES}/{card.identity.pci_bus_id}").split("/")
    except OSError:
        return []
    hosts = [at for at, part in enumerate(parts) if part.startswith("pci")]
    return parts[hosts[0] : -1] if hosts else []
