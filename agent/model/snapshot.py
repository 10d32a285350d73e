"""What one tick saw: immutable, published by one assignment, read by everything downstream."""

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from agent.model.allocation import Allocation
from agent.model.metrics import Sample
from agent.model.probe import ProbeRecord
from agent.model.reference import Series
from agent.model.verdict import CardVerdict, NodeVerdict

_EMPTY: Mapping[str, float] = MappingProxyType({})


class CardIdentity(msgspec.Struct, frozen=True):
    """Who a card is; empty text where the driver does not say.

    ``pci_bus_id`` is lower case with a four-digit domain (``0000:1b:00.0``), as sysfs writes it.
    """

    index: int
    uuid: str
    name: str = ""
    serial: str = ""
    pci_bus_id: str = ""
    vbios: str = ""
    driver: str = ""
    compute_capability: str = ""


class GpuProcess(msgspec.Struct, frozen=True):
    """One process on a card, as NVML names it; ``memory_bytes`` is None where the driver hides it."""

    pid: int
    kind: str
    """``compute``, ``graphics`` or ``mps``."""
    memory_bytes: int | None = None


class Card(msgspec.Struct, frozen=True):
    """One card in one tick.

    ``values`` maps the key of a quantity (see ``agent.model.quantities``) to its value in that row's
    unit. A key that is not there is unknown. A lost card keeps its identity and has no values.
    """

    identity: CardIdentity
    values: Mapping[str, float] = _EMPTY
    processes: tuple[GpuProcess, ...] | None = None
    """None where the driver does not say; empty where no process is on the card."""
    lost: str = ""
    """NVML's error name where the card is lost, needs a reset or hangs, else empty."""
    hung_s: float = 0.0
    """How long the driver call about this card has been without an answer, in seconds."""


class CollectorHealth(msgspec.Struct, frozen=True):
    """How one collector fares; data and health are apart, so an absent value never means failure."""

    name: str
    attempts: int = 0
    ok: bool | None = None
    """None before the first attempt, and where the machine has nothing to collect."""
    last_success_wall_s: float | None = None
    duration_s: float | None = None
    errors: Mapping[str, int] = MappingProxyType({})
    """Count of failures by reason; every reason exists at 0 from the start."""


class NvmlHealth(msgspec.Struct, frozen=True):
    """How the driver and its reader child fare."""

    up: bool = False
    error: str = ""
    """NVML's error name or the reader's trouble while down, else empty."""
    advice: str = ""
    """The likely cause in one line while down, else empty."""
    driver: str = ""
    nvml: str = ""
    """NVML's version, as ``13.580.159.04``: the major CUDA version it serves stands before the driver's."""
    restarts: int = 0
    stuck_readers: int = 0
    hung_s: float = 0.0
    """Seconds the current driver call has been without an answer, 0 while it answers."""
    dropped: Mapping[str, int] = MappingProxyType({})
    """Values dropped because they lay outside their row's range, by quantity key."""
    recording: str = ""
    """Name of the recording that is played in place of this machine's cards, else empty."""


class LoopHealth(msgspec.Struct, frozen=True):
    """How the agent's own loop fares."""

    ticks: int = 0
    overruns: int = 0
    clock_steps: int = 0


class Snapshot(msgspec.Struct, frozen=True):
    """All that one tick knows."""

    taken_monotonic_s: float
    taken_wall_s: float
    hostname: str = ""
    rack: str = ""
    position: str = ""
    cards: tuple[Card, ...] = ()
    nvml: NvmlHealth = NvmlHealth()
    host: tuple[Sample, ...] = ()
    health: tuple[CollectorHealth, ...] = ()
    loop: LoopHealth = LoopHealth()
    probes: tuple[ProbeRecord, ...] = ()
    """The last record of each (device, probe, variant, dtype, shape, mode)."""
    probe_history: Mapping[tuple[str, Series], tuple[float, ...]] = MappingProxyType({})
    """The latest good values of each probe, oldest first, by the card's UUID and the series."""
    probe_counts: tuple[Sample, ...] = ()
    """Counters and gauges of the probe schedule (runs by status and reason, busy seconds, budget, age)."""
    allocations: tuple[Allocation, ...] = ()
    """Who holds which card, where a scheduler says so."""
    verdicts: tuple[CardVerdict, ...] = ()
    node_verdict: NodeVerdict | None = None
