"""The loop: its rhythm, what it publishes, what it counts."""

from collections.abc import Collection, Mapping

import structlog.testing

from agent.daemon import Daemon
from agent.host.collect import HostReading
from agent.model.allocation import Allocation
from agent.model.metrics import Sample
from agent.model.probe import ProbeRecord
from agent.model.reference import Series
from agent.model.snapshot import Card, CardIdentity, CollectorHealth, NvmlHealth, Snapshot
from agent.model.verdict import NodeVerdict
from agent.notify import Notifier
from agent.nvml.source import GpuReading
from agent.verdicts.engine import Judgement
from tests.support.clock import FakeClock

_CARD = Card(CardIdentity(0, "GPU-1"), {"temperature_core": 40.0})


class _Wakeup:
    """Passes the clock's time; stops after so many waits."""

    def __init__(self, clock: FakeClock, waits: int) -> None:
        self.stopping = False
        self.reload_wanted = False
        self.waited_s: list[float] = []
        self._clock = clock
        self._left = waits

    def wait(self, timeout_s: float) -> None:
        self.waited_s.append(round(timeout_s, 6))
        self._clock.advance(timeout_s)
        self._left -= 1
        self.stopping = self._left <= 0


class _Parts:
    """Source, host, probes and judge in one, each as simple as can be."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.work_s = 0.1
        self.calls: list[str] = []
        self.observed: list[Snapshot] = []

    def begin_tick(self) -> None:
        self.calls.append("begin")

    def collect(self) -> HostReading:
        self.calls.append("host")
        self.clock.advance(self.work_s)
        return HostReading((Sample("heatsoak_host_load1", 1.0),), (CollectorHealth("load", ok=True),))

    def end_tick(self, until_monotonic_s: float) -> GpuReading:
        self.calls.append("end")
        self.until_s = until_monotonic_s
        return GpuReading((_CARD,), NvmlHealth(up=True))

    def burst(self, uuid: str, timeout_s: float) -> Card | None:
        raise AssertionError((uuid, timeout_s))

    def pause(self, uuids: Collection[str]) -> None:
        raise AssertionError(uuids)

    def resume(self, uuids: Collection[str]) -> None:
        raise AssertionError(uuids)

    def close(self, timeout_s: float) -> None:
        raise AssertionError(timeout_s)

    def records(self) -> tuple[ProbeRecord, ...]:
        return ()

    def values(self) -> Mapping[tuple[str, Series], tuple[float, ...]]:
        """Return no values."""
        return {}

    def counts(self) -> tuple[Sample, ...]:
        return (Sample("heatsoak_probe_running", 0.0),)

    def observe(self, snapshot: Snapshot) -> None:
        self.observed.append(snapshot)

    def judge(self, snapshot: Snapshot) -> Judgement:
        return Judgement((), NodeVerdict("ok", snapshot.taken_wall_s))


class _Allocations:
    """Says that one card is held."""

    def latest(self) -> tuple[Allocation, ...]:
        """Return it."""
        return (Allocation(_CARD.identity.uuid, job="7"),)

    def observe(self, snapshot: Snapshot) -> None:
        """Take no notice."""


class _Failing(_Parts):
    """Parts whose judge has a fault."""

    def judge(self, snapshot: Snapshot) -> Judgement:
        raise ZeroDivisionError(snapshot.hostname)


def _daemon(clock: FakeClock, wakeup: _Wakeup, parts: _Parts, published: list[Snapshot]) -> Daemon:
    return Daemon(
        tick_s=1.0,
        base=Snapshot(0.0, 0.0, hostname="n1", rack="r1"),
        source=parts,
        host=parts,
        probes=parts,
        judge=parts,
        allocations=_Allocations(),
        publish=published.append,
        further_health=lambda: (CollectorHealth("state", ok=True),),
        reload=lambda: parts.calls.append("reload"),
        clock=clock,
        wakeup=wakeup,
        notifier=Notifier({}),
    )


def _run(waits: int, work_s: float = 0.1) -> tuple[list[Snapshot], _Wakeup, _Parts]:
    clock = FakeClock()
    published: list[Snapshot] = []
    wakeup, parts = _Wakeup(clock, waits), _Parts(clock)
    parts.work_s = work_s
    _daemon(clock, wakeup, parts, published).run()
    return published, wakeup, parts


def test_ticks_keep_their_rhythm_whatever_the_work_takes() -> None:
    """The rest is what the work left of the period, so that ticks lie one period apart."""
    published, wakeup, _ = _run(waits=3)
    assert wakeup.waited_s == [0.9, 0.9, 0.9]
    assert [round(s.taken_monotonic_s - published[0].taken_monotonic_s, 6) for s in published] == [0.0, 1.0, 2.0]


def test_the_reader_works_while_the_host_is_read() -> None:
    """The ask goes out first, the answer is awaited last and for half a period at most."""
    published, _, parts = _run(waits=1)
    assert parts.calls == ["begin", "host", "end"]
    assert parts.until_s == published[0].taken_monotonic_s + 0.5


def test_a_snapshot_holds_all_parts_and_the_verdicts() -> None:
    """Everything of one tick, with what never changes, and the judged snapshot goes to the probes too."""
    published, _, parts = _run(waits=1)
    snapshot = published[0]
    assert (snapshot.hostname, snapshot.rack, snapshot.cards, snapshot.nvml.up) == ("n1", "r1", (_CARD,), True)
    assert [row.name for row in snapshot.health] == ["load", "nvml", "state"]
    assert snapshot.node_verdict == NodeVerdict("ok", snapshot.taken_wall_s)
    assert parts.observed == published


def test_an_overrun_reanchors_is_counted_and_logged_once() -> None:
    """Ticks that outlast their period follow at once; the first of a row is told."""
    clock = FakeClock()
    published: list[Snapshot] = []
    wakeup, parts = _Wakeup(clock, 1), _Parts(clock)
    parts.work_s = 2.5
    daemon = _daemon(clock, wakeup, parts, published)
    with structlog.testing.capture_logs() as lines:
        for _ in range(3):
            daemon.tick()
            daemon._next_due_s(clock.monotonic_s() - 2.5)
    assert published[-1].loop.overruns == 2
    assert [line["event"] for line in lines] == ["tick_overran"]


def test_a_step_of_the_wall_clock_is_counted_and_changes_no_rhythm() -> None:
    """Back 30 s and forward 20 days: one warning with the size each, ticks as before."""
    clock = FakeClock()
    published: list[Snapshot] = []
    wakeup, parts = _Wakeup(clock, 4), _Parts(clock)
    steps = {2: -30.0, 3: 20 * 86400.0}

    def publish(snapshot: Snapshot) -> None:
        published.append(snapshot)
        clock.step_wall(steps.get(len(published), 0.0))

    daemon = _daemon(clock, wakeup, parts, [])
    daemon._publish = publish
    with structlog.testing.capture_logs() as lines:
        daemon.run()
    assert [line["step_s"] for line in lines if line["event"] == "wall_clock_stepped"] == [-30.0, 1728000.0]
    assert wakeup.waited_s == [0.9] * 4
    assert published[-1].loop.clock_steps == 2


def test_a_fault_in_judging_costs_the_verdicts_only() -> None:
    """Readings are published without verdicts; the fault is told once."""
    clock = FakeClock()
    published: list[Snapshot] = []
    wakeup, parts = _Wakeup(clock, 3), _Failing(clock)
    daemon = _daemon(clock, wakeup, parts, published)
    with structlog.testing.capture_logs() as lines:
        daemon.run()
    assert [(len(s.cards), s.verdicts, s.node_verdict) for s in published] == [(1, (), None)] * 3
    assert [line["event"] for line in lines] == ["judging_failed"]


def test_a_wish_to_reload_is_granted_between_two_ticks() -> None:
    """The handler only notes it; the loop acts and forgets it."""
    clock = FakeClock()
    published: list[Snapshot] = []
    wakeup, parts = _Wakeup(clock, 2), _Parts(clock)
    wakeup.reload_wanted = True
    _daemon(clock, wakeup, parts, published).run()
    assert parts.calls.count("reload") == 1
    assert parts.calls[0] == "reload"
