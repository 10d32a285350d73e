"""What a process that holds a GPU does with CPU, memory and disks; read without privileges."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from agent.clock import Clock
from agent.errors import HeatsoakError
from agent.host.cgroups import Cgroups
from agent.host.cpu import TICKS_PER_S, CpuTimes
from agent.host.fields import count_cpus, pressure_s
from agent.host.files import Tree
from agent.model.process import HostCpuReading, ProcessReading, ProcessReport
from agent.model.text import clean_label

_THREAD_LIMIT: Final = 1024
_DESCENDANT_LIMIT: Final = 1024


class ProcessGoneError(HeatsoakError):
    """The process is not there, or not any more."""


class Stat(msgspec.Struct, frozen=True):
    """What one stat file says of a process or thread."""

    name: str
    state: str
    parent: int
    own_cpu_s: float
    ended_children_cpu_s: float
    threads: int
    started_s: float


class _Thread(msgspec.Struct, frozen=True):
    state: str
    cpu_s: float
    children: tuple[int, ...]


def parse_stat(text: str) -> Stat:
    """Return what /proc/PID/stat or /proc/PID/task/TID/stat says; the name may hold anything.

    Raises:
        ValueError: the text has no name in parentheses, or too few numbers after it.
    """
    before, opened, rest = text.partition("(")
    name, closed, after = rest.rpartition(")")
    fields = after.split()
    if not (before and opened and closed) or len(fields) < 20:
        raise ValueError(f"no stat of a process: {clean_label(text)!r}")
    return Stat(
        name=clean_label(name),
        state=fields[0],
        parent=int(fields[1]),
        own_cpu_s=(int(fields[11]) + int(fields[12])) / TICKS_PER_S,
        ended_children_cpu_s=(int(fields[13]) + int(fields[14])) / TICKS_PER_S,
        threads=int(fields[17]),
        started_s=int(fields[19]) / TICKS_PER_S,
    )


class Processes:
    """Reads processes under the host's /proc."""

    def __init__(self, proc: Tree, cgroups: Cgroups, clock: Clock) -> None:
        """Take the host's /proc, its control groups and the clock that labels readings."""
        self._proc = proc
        self._cgroups = cgroups
        self._clock = clock

    def report(self, gpus_of_pid: Mapping[int, tuple[str, ...]]) -> ProcessReport:
        """Return the host's CPUs and every process named, those left out that are gone.

        Raises:
            OSError: the host's own figures cannot be read.
            ValueError: they are not understood.
        """
        holders = frozenset(gpus_of_pid)
        readings = (self._read_or_none(pid, gpus, holders) for pid, gpus in sorted(gpus_of_pid.items()))
        return ProcessReport(host=self._host(), processes=tuple(reading for reading in readings if reading))

    def read(self, pid: int, gpus: tuple[str, ...], holders: frozenset[int]) -> ProcessReading:
        """Return one process with its descendants, those in ``holders`` and theirs left out.

        Raises:
            ProcessGoneError: there is no such process, or it may not be seen.
        """
        try:
            return self._read(pid, gpus, holders)
        except (OSError, ValueError, LookupError) as error:
            raise ProcessGoneError(f"process {pid} cannot be read ({error}); it must be alive and visible") from error

    def _read_or_none(self, pid: int, gpus: tuple[str, ...], holders: frozenset[int]) -> ProcessReading | None:
        try:
            return self.read(pid, gpus, holders)
        except ProcessGoneError:
            return None

    def _read(self, pid: int, gpus: tuple[str, ...], holders: frozenset[int]) -> ProcessReading:
        stat = parse_stat(self._proc.read(f"{pid}/stat"))
        threads = list(self._threads(pid))
        family = list(self._descendants(threads, holders - {pid}, pid))
        everyone = [thread for _, members in family for thread in members] + threads
        status = dict(line.split(":", 1) for line in self._proc.read(f"{pid}/status").splitlines() if ":" in line)
        return ProcessReading(
            pid=pid,
            started_s=stat.started_s,
            gpus=gpus,
            taken_monotonic_s=self._clock.monotonic_s(),
            cpu_s=sum(one.own_cpu_s + one.ended_children_cpu_s for one in (stat, *(member for member, _ in family))),
            allowed_cores=count_cpus(status["Cpus_allowed_list"]),
            threads=len(everyone),
            running_threads=sum(thread.state == "R" for thread in everyone),
            blocked_threads=sum(thread.state == "D" for thread in everyone),
            main_state=stat.state,
            busiest_thread_cpu_s=max((thread.cpu_s for thread in threads), default=None),
            name=stat.name,
            cgroup=self._cgroups.reading(self._proc.read_or_none(f"{pid}/cgroup") or ""),
        )

    def _threads(self, pid: int) -> Iterator[_Thread]:
        """Yield the threads of a process, those left out that end meanwhile."""
        for thread in self._proc.names(f"{pid}/task")[:_THREAD_LIMIT]:
            stat_text = self._proc.read_or_none(f"{pid}/task/{thread}/stat")
            if not stat_text:
                continue
            stat = parse_stat(stat_text)
            children = (self._proc.read_or_none(f"{pid}/task/{thread}/children") or "").split()
            yield _Thread(stat.state, stat.own_cpu_s, tuple(map(int, children)))

    def _descendants(
        self, threads: list[_Thread], holders: frozenset[int], pid: int
    ) -> Iterator[tuple[Stat, list[_Thread]]]:
        """Yield each living descendant with its threads."""
        waiting = [child for thread in threads for child in thread.children]
        seen = {pid, *holders}
        for child in waiting:  # grows while it is walked
            if child in seen or len(seen) > _DESCENDANT_LIMIT + len(holders):
                continue
            seen.add(child)
            try:
                stat = parse_stat(self._proc.read(f"{child}/stat"))
                members = list(self._threads(child))
            except OSError:
                continue
            waiting += [grandchild for thread in members for grandchild in thread.children]
            yield stat, members

    def _host(self) -> HostCpuReading:
        times = CpuTimes(self._proc.read("stat"))
        pressure = self._proc.read_or_none("pressure/io")
        return HostCpuReading(
            taken_monotonic_s=self._clock.monotonic_s(),
            cores=times.online,
            idle_s=times.seconds["idle"] + times.seconds.get("iowait", 0.0),
            io_pressure_s=pressure_s(pressure)["some"] if pressure else None,
        )
