"""The host collectors run: timed, caught, counted and logged in one place."""

from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

import msgspec
import structlog

from agent.clock import Clock
from agent.config.settings import HostSettings
from agent.host.cgroup import Cgroup
from agent.host.cgroups import Cgroups
from agent.host.collector import Collector, NameTakenError, NothingHereError
from agent.host.cpu import Cpu
from agent.host.disk import Disk
from agent.host.files import Tree
from agent.host.load import Load
from agent.host.memory import Memory, Swap
from agent.host.network import Network
from agent.host.pressure import Pressure
from agent.host.shm import SharedMemory
from agent.host.system import Hypervisor, System
from agent.model.metrics import Metric, Sample
from agent.model.snapshot import CollectorHealth

REASONS: Final = ("missing", "unreadable", "malformed", "internal")
"""Why a collector failed: its source is not there, cannot be read, is not understood; or a fault of ours."""

HOST_METRICS: Final[tuple[Metric, ...]] = tuple(
    metric
    for collector in (Cpu, Load, Memory, Swap, Pressure, Disk, Network, Cgroup, SharedMemory, Hypervisor, System)
    for metric in collector.metrics
)
"""Every metric that a host collector may give."""

_log = structlog.get_logger("host")


class HostReading(msgspec.Struct, frozen=True):
    """All that the host collectors saw in one tick, and how each fares."""

    samples: tuple[Sample, ...] = ()
    health: tuple[CollectorHealth, ...] = ()


class HostCollectors:
    """Runs every collector each tick; one that fails costs only its own samples."""

    def __init__(self, collectors: Iterable[Collector], clock: Clock) -> None:
        """Take the collectors in the order they run.

        Raises:
            NameTakenError: two of them share a name or a metric.
        """
        self._runs = tuple(_Run(collector, clock) for collector in collectors)
        names = [run.collector.name for run in self._runs]
        names += [metric.name for run in self._runs for metric in run.collector.metrics]
        if taken := sorted({name for name in names if names.count(name) > 1}):
            raise NameTakenError(f"collectors share {', '.join(taken)}; each name must have one owner")

    def collect(self) -> HostReading:
        """Run all of them; never raises."""
        samples: list[Sample] = []
        for run in self._runs:
            samples += run.collect()
        return HostReading(tuple(samples), tuple(run.health for run in self._runs))


class _Run:
    """One collector with its record."""

    def __init__(self, collector: Collector, clock: Clock) -> None:
        self.collector = collector
        self.health = CollectorHealth(collector.name, errors=MappingProxyType(dict.fromkeys(REASONS, 0)))
        self._clock = clock
        self._trouble = ""
        self._log = _log.bind(collector=collector.name)

    def collect(self) -> list[Sample]:
        start_s = self._clock.monotonic_s()
        samples: list[Sample] = []
        ok: bool | None = True
        reason = trouble = ""
        try:
            samples = self._checked(self.collector.collect())
        except NothingHereError as error:
            ok, trouble = None, str(error)
        except Exception as error:  # noqa: BLE001 - the wrapper: one collector never costs another
            ok, reason, trouble = False, _reason(error), f"{type(error).__name__}: {error}"
        self._record(ok, reason, self._clock.monotonic_s() - start_s)
        self._tell(ok, reason, trouble)
        return samples

    def _checked(self, samples: list[Sample]) -> list[Sample]:
        if len({(sample.name, sample.labels) for sample in samples}) < len(samples):
            names = sorted({sample.name for sample in samples})
            raise ValueError(f"one series twice among {', '.join(names)}; each must have one value")
        return samples

    def _record(self, ok: bool | None, reason: str, duration_s: float) -> None:
        last = self.health
        errors = last.errors
        if reason:
            errors = MappingProxyType({**errors, reason: errors[reason] + 1})
        self.health = CollectorHealth(
            name=last.name,
            attempts=last.attempts + 1,
            ok=ok,
            last_success_wall_s=self._clock.wall_s() if ok else last.last_success_wall_s,
            duration_s=duration_s,
            errors=errors,
        )

    def _tell(self, ok: bool | None, reason: str, trouble: str) -> None:
        """Log what changed since the last run, once."""
        state = reason if ok is False else trouble
        if state == self._trouble:
            return
        self._trouble = state
        if ok is False:
            self._log.warning("collector_failed", reason=reason, error=trouble)
        elif ok is None:
            self._log.info("collector_has_nothing", missing=trouble)
        else:
            self._log.info("collector_recovered")


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "missing"
    if isinstance(error, OSError):
        return "unreadable"
    return "malformed" if isinstance(error, ValueError | LookupError) else "internal"


def build(settings: HostSettings, clock: Clock) -> HostCollectors:
    """Return the collectors that ``settings`` leave on."""
    proc, sys = Tree(settings.proc_root), Tree(settings.sys_root)
    everything: tuple[Collector, ...] = (
        Cpu(proc),
        Load(proc),
        Memory(proc),
        Swap(proc),
        Pressure(proc),
        Disk(proc, sys, settings.disk_exclude),
        Network(proc, settings.network_exclude),
        Cgroup(Tree("/proc"), Cgroups(Tree("/sys"), Tree("/sys"))),
        SharedMemory(),
        Hypervisor(proc, sys),
        System(proc, Tree("/etc")),
    )
    return HostCollectors((collector for collector in everything if collector.name not in settings.off), clock)
