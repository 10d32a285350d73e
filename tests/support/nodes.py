"""What node rules get, built from a few words."""

from collections.abc import Iterable

from agent.model.probe import ProbeRecord
from agent.model.snapshot import CardIdentity, NvmlHealth
from agent.verdicts import keys
from agent.verdicts.history import RECENT_S, Recorder
from agent.verdicts.view import CardView, NodeView
from tests.support.snapshots import TAKEN_MONOTONIC_S, TAKEN_WALL_S


def node_of(
    cards: Iterable[CardView] = (),
    *,
    up: bool = True,
    error: str = "",
    hung_s: float = 0.0,
    ticks: int = 10,
    present: int | None = None,
    expected_gpus: int | None = None,
    pci_bus_ids: tuple[str, ...] = (),
    inventory: tuple[CardIdentity, ...] = (),
    paused: frozenset[str] = frozenset(),
    probes: tuple[ProbeRecord, ...] = (),
) -> NodeView:
    """Return a node that was as it is for so many ticks."""
    cards = tuple(cards)
    recorder = Recorder(keys.NODE, 1.0, RECENT_S)
    row = {
        keys.NVML_UP: float(up),
        keys.HUNG: float(hung_s > 0),
        keys.CARDS_PRESENT: float(len(cards) if present is None else present),
    }
    for n in range(ticks):
        recorder.add(TAKEN_MONOTONIC_S + n, row)
    return NodeView(
        now_monotonic_s=TAKEN_MONOTONIC_S + ticks,
        now_wall_s=TAKEN_WALL_S + ticks,
        nvml=NvmlHealth(up=up, error=error, hung_s=hung_s),
        cards=cards,
        expected_gpus=expected_gpus,
        pci_bus_ids=pci_bus_ids,
        inventory=inventory,
        paused=paused,
        recent=recorder.window,
        probes=probes,
    )
