"""What a rule gets, and what a rule is: frozen views of the recent past and the signature of a judgement."""

import itertools
import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from agent.config.settings import VerdictSettings
from agent.model.probe import ProbeRecord
from agent.model.process import HostCpuReading, ProcessReading, ProcessReport
from agent.model.reference import Reference
from agent.model.snapshot import Card, CardIdentity, CollectorHealth, NvmlHealth
from agent.model.verdict import RuleMode

COVERAGE: Final = 0.8
"""Share of a span that must hold values before anything is said about the span."""


class Window(msgspec.Struct, frozen=True):
    """The recent past of one card: one row a step, oldest first, one column a quantity key.

    NaN marks what was unknown at a row; it never leaves the methods. The columns are the recorder's own
    buffers and valid during the judgement only: a rule keeps no reference to them.
    """

    step_s: float
    times_s: Sequence[float]
    """CLOCK_MONOTONIC of each row."""
    columns: Mapping[str, Sequence[float]]

    def start(self, span_s: float) -> int:
        """Return the index of the first row within the last ``span_s`` seconds."""
        if not self.times_s:
            return 0
        return bisect_left(self.times_s, self.times_s[-1] - span_s + self.step_s / 2)

    def last(self, key: str) -> float | None:
        """Return the newest row's value; None where it is unknown."""
        column = self.columns.get(key)
        if not column or math.isnan(column[-1]):
            return None
        return column[-1]

    def tail(self, key: str, rows: int) -> list[float] | None:
        """Return the newest ``rows`` values, oldest first; None unless there are that many, all known."""
        column = self.columns.get(key, ())
        values = column[-rows:]
        if len(values) < rows or any(math.isnan(value) for value in values):
            return None
        return list(values)

    def values(self, key: str, span_s: float) -> list[float]:
        """Return the known values of the last ``span_s`` seconds, oldest first."""
        column = self.columns.get(key)
        if column is None:
            return []
        return [value for value in column[self.start(span_s) :] if not math.isnan(value)]

    def covered(self, key: str, span_s: float) -> list[float] | None:
        """Return the known values of the span; None unless they cover ``COVERAGE`` of it."""
        values = self.values(key, span_s)
        return values if len(values) * self.step_s >= COVERAGE * span_s else None

    def mean(self, key: str, span_s: float) -> float | None:
        """Return the mean over the span; None unless values cover ``COVERAGE`` of it."""
        values = self.covered(key, span_s)
        return sum(values) / len(values) if values else None

    def share(self, key: str, span_s: float, at_least: float = 1.0) -> float | None:
        """Return the share of the span, 0 to 1, in which the value was ``at_least``; None unless covered."""
        values = self.covered(key, span_s)
        return sum(value >= at_least for value in values) / len(values) if values else None

    def increase(self, key: str, span_s: float) -> float | None:
        """Return by how much a counter rose in the span; a reset counts from 0. None below three values.

        A median of three drops a lone spike or dip and leaves a rising series as it is, so that no
        single sample makes a rise; the price is one step of delay.
        """
        values = self.values(key, span_s)
        if len(values) < 3:
            return None
        if values[0] == values[-1] == max(values):
            return 0.0
        smooth = [statistics.median(values[i : i + 3]) for i in range(len(values) - 2)]
        return sum(after - before if after >= before else after for before, after in itertools.pairwise(smooth))

    def rate(self, key: str, span_s: float) -> float | None:
        """Return by how much a counter rose a second in the span; None below five values."""
        increase, rows = self.increase(key, span_s), len(self.values(key, span_s))
        if increase is None or rows < 5:
            return None
        return increase / ((rows - 3) * self.step_s)  # the median of three leaves out both ends


EMPTY_WINDOW: Final = Window(1.0, (), MappingProxyType({}))


class ResistanceSample(msgspec.Struct, frozen=True):
    """Thermal resistance as one steady load showed it."""

    wall_s: float
    kelvin_per_watt: float
    power_watts: float


class ProcessSpan(msgspec.Struct, frozen=True, kw_only=True):
    """What one GPU process and the host's CPUs did over a span of time."""

    first: ProcessReading
    last: ProcessReading
    host_first: HostCpuReading
    host_last: HostCpuReading
    running_threads: float
    """Mean number of threads running or runnable at the sweeps."""
    blocked_threads: float
    """Mean number of threads in uninterruptible sleep at the sweeps."""

    @property
    def seconds(self) -> float:
        """Length of the span."""
        return self.last.taken_monotonic_s - self.first.taken_monotonic_s


class CardView(msgspec.Struct, frozen=True, kw_only=True):
    """All that a card rule may look at."""

    now_monotonic_s: float
    now_wall_s: float
    card: Card
    """As the latest snapshot has it."""
    recent: Window = EMPTY_WINDOW
    """At most one row a second, the last 5 minutes."""
    minutes: Window = EMPTY_WINDOW
    """One row a minute, the last 12 hours: means of gauges, latest values of counters."""
    probes: tuple[ProbeRecord, ...] = ()
    """This card's finished probes of every kind and status, oldest first."""
    references: tuple[Reference, ...] = ()
    """This card's references, current and retired."""
    processes: tuple[ProcessSpan, ...] = ()
    """Processes on this card that were watched over the span that `input_bound` judges."""
    resistances: tuple[ResistanceSample, ...] = ()
    """This card's thermal resistance under earlier loads, oldest first."""
    peers: tuple["CardView", ...] = ()
    """The other cards of the same model in this node (their own ``peers`` are empty)."""
    paused: bool = False
    """An operator has paused the card."""
    held: frozenset[str] = frozenset()
    """Names of the rules that held for this card a tick ago: what is in may use a lower threshold to get out."""


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """All that a node rule may look at."""

    now_monotonic_s: float
    now_wall_s: float
    nvml: NvmlHealth
    cards: tuple[CardView, ...] = ()
    expected_gpus: int | None = None
    """How many cards there should be by the configuration; None where it does not say."""
    pci_bus_ids: tuple[str, ...] = ()
    """NVIDIA display devices on the PCI bus, as sysfs writes them."""
    inventory: tuple[CardIdentity, ...] = ()
    """Cards that were accepted as belonging to this node."""
    paused: frozenset[str] = frozenset()
    """UUIDs of cards an operator has paused."""
    recent: Window = EMPTY_WINDOW
    """At most one row a second, the last 5 minutes, of the node's own keys."""
    health: tuple[CollectorHealth, ...] = ()
    probes: tuple[ProbeRecord, ...] = ()
    """Finished probes of all cards, oldest first."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the agent knows beside the snapshot. The tuples are replaced, never changed: identity tells news."""

    probes: tuple[ProbeRecord, ...] = ()
    """Finished probes of all cards that history keeps, oldest first."""
    references: tuple[Reference, ...] = ()
    processes: ProcessReport | None = None
    """The latest sweep over GPU processes; None where process ids cannot be trusted."""
    expected_gpus: int | None = None
    pci_bus_ids: tuple[str, ...] = ()
    inventory: tuple[CardIdentity, ...] = ()
    paused: frozenset[str] = frozenset()
    """UUIDs of cards an operator has paused."""


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule says where it holds; the engine adds rule name, mode and since when."""

    state: str
    """A card, workload or node state; ``ok`` informs only."""
    cause: str
    """One word of a closed list in the rule's module, for labels."""
    summary: str
    """One sentence for somebody tired."""
    next_action: str
    evidence: Mapping[str, float] = MappingProxyType({})
    """The numbers and the thresholds they crossed, names ending in their unit."""
    suspect: bool = False
    """A probe soon would tell more: the card is named to the probe service."""


Inputs = Literal["readings", "minutes", "probes"]


class CardRule(msgspec.Struct, frozen=True):
    """A named pure function over a card's view; None where the rule does not hold."""

    name: str
    judge: Callable[[CardView, VerdictSettings], Conclusion | None]
    mode: RuleMode = "on"
    """Unless the configuration says otherwise."""
    inputs: Inputs = "readings"
    """What it reads, so that it is asked only when that changed: ``readings`` each tick, ``minutes`` once a
    minute, ``probes`` when a probe or a reference of the card or of a peer is new."""


class NodeRule(msgspec.Struct, frozen=True):
    """A named pure function over the node's view; ``covers`` are the card rules it explains away."""

    name: str
    judge: Callable[[NodeView, VerdictSettings], Conclusion | None]
    mode: RuleMode = "on"
    covers: tuple[str, ...] = ()
    """Card rules whose findings this one replaces while it holds: one fault, one alarm."""
