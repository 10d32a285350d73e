"""The loop: read cards and host, judge, publish one immutable snapshot a tick."""

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
import structlog

from agent.clock import Clock
from agent.model.allocation import Allocation
from agent.model.metrics import Sample
from agent.model.probe import ProbeRecord
from agent.model.reference import Series
from agent.model.snapshot import CollectorHealth, LoopHealth, Snapshot
from agent.notify import Notifier
from agent.nvml.source import CardSource
from agent.verdicts.engine import Judgement
from agent.wakeup import Wakeup

_log = structlog.get_logger("loop")
_CLOCK_STEP_S = 5.0
_GPU_WAIT_SHARE = 0.5


class HostReading(Protocol):
    """What the host collectors hand over in one tick."""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Return every host value."""

    @property
    def health(self) -> tuple[CollectorHealth, ...]:
        """Return one row per collector."""


class Host(Protocol):
    """The host collectors."""

    def collect(self) -> HostReading:
        """Read all of them; never raises."""


class Probes(Protocol):
    """The probe schedule as the loop sees it."""

    def records(self) -> tuple[ProbeRecord, ...]:
        """Return the last record of each kind."""

    def values(self) -> Mapping[tuple[str, Series], tuple[float, ...]]:
        """Return the latest good values of each figure, by the card's UUID and the series."""

    def counts(self) -> tuple[Sample, ...]:
        """Return the schedule's counters and gauges."""

    def observe(self, snapshot: Snapshot) -> None:
        """Take in what a tick saw; never raises."""


class Allocations(Protocol):
    """Who holds which card, as the loop sees it."""

    def latest(self) -> tuple[Allocation, ...]:
        """Return who holds which card; empty where that is not known."""

    def observe(self, snapshot: Snapshot) -> None:
        """Take in what a tick saw; never raises."""


class Judge(Protocol):
    """The verdicts."""

    def judge(self, snapshot: Snapshot) -> Judgement:
        """Judge one snapshot."""


class Daemon:
    """Runs ticks until asked to stop; a tick's trouble is counted and never ends it."""

    def __init__(
        self,
        *,
        tick_s: float,
        base: Snapshot,
        source: CardSource,
        host: Host,
        probes: Probes,
        judge: Judge,
        allocations: Allocations,
        publish: Callable[[Snapshot], None],
        further_health: Callable[[], tuple[CollectorHealth, ...]],
        reload: Callable[[], None],
        clock: Clock,
        wakeup: Wakeup,
        notifier: Notifier,
    ) -> None:
        """Take all parts.

        ``base`` carries what no tick changes (host name, rack, position); ``further_health`` tells of parts
        that are no collectors. ``base`` and ``host`` may be replaced by ``reload``.
        """
        self._tick_s = tick_s
        self.base = base
        self._source = source
        self.host = host
        self._probes = probes
        self._judge = judge
        self._allocations = allocations
        self._publish = publish
        self._further_health = further_health
        self._reload = reload
        self._clock = clock
        self._wakeup = wakeup
        self._notifier = notifier
        self._loop = LoopHealth()
        self._late = False
        self._judging_failed = False

    def run(self) -> None:
        """Tick at a fixed rate on the monotonic clock until ``wakeup.stopping``.

        The next tick is due one period after the previous was due; a tick that overran its period
        re-anchors the rhythm and is counted.
        """
        due_s = self._clock.monotonic_s()
        wall_offset_s = self._clock.wall_s() - due_s
        while not self._wakeup.stopping:
            if self._wakeup.reload_wanted:
                self._wakeup.reload_wanted = False
                self._reload()
            self.tick()
            self._notifier.alive()
            due_s = self._next_due_s(due_s)
            wall_offset_s = self._watch_wall_clock(wall_offset_s)
            self._rest_until(due_s)

    def tick(self) -> None:
        """Make and publish one snapshot."""
        start_s = self._clock.monotonic_s()
        self._source.begin_tick()
        host = self.host.collect()
        gpu = self._source.end_tick(start_s + self._tick_s * _GPU_WAIT_SHARE)
        self._loop = msgspec.structs.replace(self._loop, ticks=self._loop.ticks + 1)
        snapshot = msgspec.structs.replace(
            self.base,
            taken_monotonic_s=start_s,
            taken_wall_s=self._clock.wall_s(),
            cards=gpu.cards,
            nvml=gpu.nvml,
            host=host.samples,
            health=(*host.health, gpu.health, *self._further_health()),
            loop=self._loop,
            probes=self._probes.records(),
            probe_history=self._probes.values(),
            probe_counts=self._probes.counts(),
            allocations=self._allocations.latest(),
        )
        judged = self._judged(snapshot)
        self._probes.observe(judged)
        self._allocations.observe(judged)
        self._publish(judged)

    def _judged(self, snapshot: Snapshot) -> Snapshot:
        try:
            judgement = self._judge.judge(snapshot)
        except Exception:  # noqa: BLE001 - a fault of ours costs the verdicts, never the readings or the agent
            if not self._judging_failed:
                _log.exception("judging_failed")
            self._judging_failed = True
            return snapshot
        self._judging_failed = False
        return msgspec.structs.replace(snapshot, verdicts=judgement.cards, node_verdict=judgement.node)

    def _next_due_s(self, due_s: float) -> float:
        due_s += self._tick_s
        now_s = self._clock.monotonic_s()
        overran = now_s > due_s
        if overran:
            self._loop = msgspec.structs.replace(self._loop, overruns=self._loop.overruns + 1)
        if overran and not self._late:
            _log.warning("tick_overran", late_s=round(now_s - due_s, 3), overruns=self._loop.overruns)
        self._late = overran
        return max(due_s, now_s)

    def _watch_wall_clock(self, offset_s: float) -> float:
        now_offset_s = self._clock.wall_s() - self._clock.monotonic_s()
        if abs(now_offset_s - offset_s) > _CLOCK_STEP_S:
            self._loop = msgspec.structs.replace(self._loop, clock_steps=self._loop.clock_steps + 1)
            _log.warning("wall_clock_stepped", step_s=round(now_offset_s - offset_s, 1))
        return now_offset_s

    def _rest_until(self, due_s: float) -> None:
        while not (self._wakeup.stopping or self._wakeup.reload_wanted):
            rest_s = due_s - self._clock.monotonic_s()
            if rest_s <= 0:
                return
            self._wakeup.wait(rest_s)
