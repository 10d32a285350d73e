"""What rules get, built from readings as tests write them."""

import itertools
from collections.abc import Iterable, Mapping

from agent.config.settings import VerdictSettings
from agent.model.process import CgroupReading, HostCpuReading, ProcessReading
from agent.model.snapshot import Card, GpuProcess
from agent.verdicts import keys
from agent.verdicts.history import CardHistory
from agent.verdicts.view import CardView, ProcessSpan
from tests.support.snapshots import TAKEN_MONOTONIC_S, TAKEN_WALL_S, identity

THRESHOLDS = VerdictSettings()


class MemoryDocuments:
    """Keeps documents in memory, as the state file does on disk."""

    def __init__(self) -> None:
        """Start empty."""
        self.documents: dict[str, bytes] = {}
        self.saves = 0

    def load_document(self, name: str) -> bytes | None:
        """Return the document."""
        return self.documents.get(name)

    def save_document(self, name: str, data: bytes) -> None:
        """Keep the document."""
        self.documents[name] = data
        self.saves += 1


def card_of(
    index: int, values: Mapping[str, float], *, lost: str = "", processes: int = 1, first_pid: int = 100
) -> Card:
    """Return card ``index`` with so many processes that compute."""
    pids = range(first_pid, first_pid + processes)
    return Card(identity(index), values, tuple(GpuProcess(pid, "compute") for pid in pids), lost)


def view_of(
    rows: Iterable[Mapping[str, float]],
    *,
    step_s: float = 1.0,
    index: int = 0,
    lost: str = "",
    hung_s: float = 0.0,
    processes: tuple[GpuProcess, ...] = (GpuProcess(100, "compute"),),
    spans: tuple[ProcessSpan, ...] = (),
    peers: tuple[CardView, ...] = (),
    paused: bool = False,
    held: frozenset[str] = frozenset(),
) -> CardView:
    """Return the view after ``rows``, one a step; the last one is the card's latest readings."""
    history = CardHistory(keys.RECENT, keys.MINUTE_GAUGES, keys.MINUTE_COUNTERS, step_s)
    now_s = TAKEN_MONOTONIC_S
    latest: Mapping[str, float] = {}
    for number, row in enumerate(rows):
        now_s, latest = TAKEN_MONOTONIC_S + number * step_s, row
        marks = {keys.LOST: 0.0, keys.SILENT: float(not row)}
        history.add(now_s, {**marks, **row})
    latest = {key: value for key, value in latest.items() if key not in (keys.LOST, keys.SILENT)}
    return CardView(
        now_monotonic_s=now_s,
        now_wall_s=TAKEN_WALL_S + now_s - TAKEN_MONOTONIC_S,
        card=Card(identity(index), {} if lost else latest, processes, lost, hung_s),
        recent=history.recent,
        minutes=history.minutes,
        processes=spans,
        peers=peers,
        paused=paused,
        held=held,
    )


def steady(values: Mapping[str, float], seconds: int = 60) -> Iterable[Mapping[str, float]]:
    """Return the same readings for so many rows."""
    return itertools.repeat(values, seconds)


def span_of(
    cores: float,
    *,
    allowed: int = 16,
    host_cores: int = 16,
    host_used: float = 0.1,
    quota: float | None = None,
    throttled: float = 0.0,
    io: float | None = 0.0,
    blocked: float = 0.0,
    seconds: float = 30.0,
) -> ProcessSpan:
    """Return what a process did that used ``cores`` of what it may use, over the last ``seconds`` of a minute."""
    until_s = TAKEN_MONOTONIC_S + 59.0

    def reading(at_s: float) -> ProcessReading:
        return ProcessReading(
            pid=100,
            started_s=1.0,
            gpus=(identity(0).uuid,),
            taken_monotonic_s=at_s,
            cpu_s=cores * at_s,
            allowed_cores=allowed,
            cgroup=CgroupReading(
                quota_cores=quota,
                periods=None if quota is None else int(10 * at_s),
                throttled_periods=None if quota is None else int(10 * at_s * throttled),
                io_pressure_s=None if io is None else io * at_s,
            ),
        )

    def host(at_s: float) -> HostCpuReading:
        return HostCpuReading(at_s, host_cores, (1 - host_used) * host_cores * at_s)

    return ProcessSpan(
        first=reading(until_s - seconds),
        last=reading(until_s),
        host_first=host(until_s - seconds),
        host_last=host(until_s),
        running_threads=cores,
        blocked_threads=blocked,
    )
