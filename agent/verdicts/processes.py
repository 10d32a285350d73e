"""The recent past of the GPU processes: sweeps in, spans out."""

from collections import deque
from statistics import fmean

from agent.model.process import ProcessReading, ProcessReport
from agent.verdicts.view import ProcessSpan


class ProcessHistory:
    """The sweeps of the last ``span_s`` seconds and the one before them."""

    def __init__(self, span_s: float) -> None:
        self._span_s = span_s
        self._sweeps: deque[ProcessReport] = deque()

    def add(self, report: ProcessReport | None) -> bool:
        """Take a sweep in, once; return whether it was new. None forgets all: processes cannot be seen."""
        if report is None:
            self._sweeps.clear()
            return False
        if self._sweeps and report.host.taken_monotonic_s <= self._sweeps[-1].host.taken_monotonic_s:
            return False
        self._sweeps.append(report)
        oldest_s = report.host.taken_monotonic_s - self._span_s
        while len(self._sweeps) > 1 and self._sweeps[1].host.taken_monotonic_s <= oldest_s:
            self._sweeps.popleft()
        return True

    def spans(self) -> dict[str, tuple[ProcessSpan, ...]]:
        """Return what each process of the latest sweep did, by the UUIDs of its cards; nothing yet over 0 s."""
        if not self._sweeps:
            return {}
        past: dict[tuple[int, float], list[tuple[ProcessReport, ProcessReading]]] = {}
        for report in self._sweeps:
            for reading in report.processes:
                past.setdefault((reading.pid, reading.started_s), []).append((report, reading))
        spans: dict[str, tuple[ProcessSpan, ...]] = {}
        for latest in self._sweeps[-1].processes:
            span = _span(past[latest.pid, latest.started_s])
            for uuid in latest.gpus:
                spans[uuid] = (*spans.get(uuid, ()), span)
        return spans


def _span(seen: list[tuple[ProcessReport, ProcessReading]]) -> ProcessSpan:
    """Return the span from the first to the last time the process was seen."""
    return ProcessSpan(
        first=seen[0][1],
        last=seen[-1][1],
        host_first=seen[0][0].host,
        host_last=seen[-1][0].host,
        running_threads=fmean(reading.running_threads for _, reading in seen),
        blocked_threads=fmean(reading.blocked_threads for _, reading in seen),
    )
