"""Starving cards: low duty, a process on the card, and what that process does with the CPU it may use."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from agent.config.settings import InputBoundSettings, VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardRule, CardView, Conclusion, ProcessSpan

NAME = "input_bound"
AT_WORK: Final = 0.01
"""Utilisation from which a sample counts as work."""
BEGINNING: Final = 1 / 6
"""Share of the window that counts as its start."""
LEAVE: Final = 1.07
"""What is starving stays so until duty exceeds the threshold by this factor."""
BLOCKED: Final = 0.5
"""Mean number of threads in uninterruptible sleep that tells of a slow disk where the kernel counts no pressure."""
_NEXT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cgroup_quota": "Raise the CPU limit of the container or service, or move preprocessing elsewhere.",
        "cpuset": "Give the process more CPUs: its affinity mask or cpuset is used up.",
        "host_cpu": "Take other work off this host, or move preprocessing elsewhere: its CPUs are used up.",
        "io": "Put the data on a faster disk, cache it in memory, or read ahead in larger pieces.",
        "parallelism": "Feed the card in parallel: several loader workers, parallel map calls, prefetch.",
    }
)
_SAYS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cgroup_quota": "its process runs into the CPU quota of its control group",
        "cpuset": "its process uses up the CPUs it is pinned to",
        "host_cpu": "the host's CPUs are used up",
        "io": "its process waits for a disk",
        "parallelism": "its process computes on the CPU all the time and leaves most of its CPUs unused",
    }
)


class _Use(msgspec.Struct, frozen=True, kw_only=True):
    """What a process used of what it may use, over a span; cores as mean numbers, shares 0 to 1."""

    cores: float
    allowed: float
    host_cores: float
    host_used: float
    quota: float | None
    periods_throttled: float
    disk_pressure: float
    blocked_threads: float


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``input_bound`` with its cause, or ``underused`` where nothing in the process explains low duty."""
    limits = thresholds.input_bound
    spans = _present(view)
    window_s, least_s = _watched_s(view, spans, limits.window_s), limits.window_s * (1 - BEGINNING)
    if window_s < least_s or view.recent.mean(keys.UTILIZATION, limits.window_s) is None:
        return None
    duty = view.recent.mean(keys.UTILIZATION, window_s)
    if duty is None or not _computes(view):
        return None
    if duty >= limits.duty * (LEAVE if NAME in view.held else 1.0):
        return None
    if NAME not in view.held and not _was_at_work(view, window_s):
        return None
    evidence = {"utilization_ratio": duty, "threshold_ratio": limits.duty, "window_seconds": window_s}
    active = view.recent.share(keys.UTILIZATION, window_s, AT_WORK) or 0.0
    if active < limits.active:
        return _underused("waiting", duty, evidence | {"active_ratio": active})
    uses = [_use(span) for span in spans if span.seconds > 0 and _since_s(view, span) >= least_s]
    for use in sorted(uses, key=lambda use: use.cores, reverse=True):
        evidence |= {"process_cores": use.cores, "allowed_cores": use.allowed, "host_used_ratio": use.host_used}
        for cause, holds in _CAUSES.items():
            if holds(use, limits):
                return _starving(cause, duty, evidence | _numbers(use))
    return _underused("unexplained" if uses else "unseen", duty, evidence)


def _use(span: ProcessSpan) -> _Use:
    """Return what the process and the host did over the span."""
    host_cores = float(span.host_last.cores)
    host_s = span.host_last.taken_monotonic_s - span.host_first.taken_monotonic_s
    idle_cores = (span.host_last.idle_s - span.host_first.idle_s) / host_s
    return _Use(
        cores=max(0.0, span.last.cpu_s - span.first.cpu_s) / span.seconds,
        allowed=float(span.last.allowed_cores),
        host_cores=host_cores,
        host_used=1.0 - idle_cores / host_cores,
        quota=span.last.cgroup.quota_cores,
        periods_throttled=_throttled(span),
        disk_pressure=_pressure(span),
        blocked_threads=span.blocked_threads,
    )


def _computes(view: CardView) -> bool:
    """Return whether a process other than a desktop's is on the card."""
    return any(process.kind != "graphics" for process in view.card.processes or ())


def _present(view: CardView) -> tuple[ProcessSpan, ...]:
    """Return the spans of processes that are still on the card, whose sweeps are rarer than its readings."""
    pids = {process.pid for process in view.card.processes or ()}
    return tuple(span for span in view.processes if span.last.pid in pids)


def _watched_s(view: CardView, spans: tuple[ProcessSpan, ...], window_s: float) -> float:
    """Return for how much of the window a process that can be seen was there: the one that came first.

    What the card did before says nothing of the processes that are on it now. One that comes and goes beside a job
    must not hide that the job starves. Where no process can be seen at all it is the whole window.
    """
    if not view.processes:
        return window_s
    return min(window_s, max((_since_s(view, span) for span in spans), default=0.0))


def _since_s(view: CardView, span: ProcessSpan) -> float:
    """Return how long ago a process was first seen on the card."""
    return view.now_monotonic_s - span.first.taken_monotonic_s


def _was_at_work(view: CardView, window_s: float) -> bool:
    """Return whether the card worked as the window began; else it holds a job's start, before its first step."""
    values = view.recent.values(keys.UTILIZATION, window_s)
    return any(value >= AT_WORK for value in values[: max(1, round(len(values) * BEGINNING))])


def _quota(use: _Use, limits: InputBoundSettings) -> bool:
    """Return whether the quota ran out in too many periods."""
    return use.quota is not None and use.periods_throttled >= limits.periods_throttled


def _cpuset(use: _Use, limits: InputBoundSettings) -> bool:
    """Return whether the process uses up fewer CPUs than the host has."""
    return use.allowed < use.host_cores and use.cores >= limits.used_up * use.allowed


def _host(use: _Use, limits: InputBoundSettings) -> bool:
    """Return whether a process that computes has to share CPUs that are used up."""
    return use.host_used >= limits.used_up and use.cores >= limits.computing_cores / 2


def _disk(use: _Use, limits: InputBoundSettings) -> bool:
    """Return whether tasks wait for a disk for much of the time."""
    return use.disk_pressure >= limits.waiting_for_disk or use.blocked_threads >= BLOCKED


def _serial(use: _Use, limits: InputBoundSettings) -> bool:
    """Return whether the process computes all the time and leaves CPUs unused."""
    allowance = min(use.allowed, use.quota if use.quota is not None else use.allowed)
    return limits.computing_cores <= use.cores < limits.used_up * allowance


_CAUSES: Final[Mapping[str, Callable[[_Use, InputBoundSettings], bool]]] = MappingProxyType(
    {"cgroup_quota": _quota, "cpuset": _cpuset, "host_cpu": _host, "io": _disk, "parallelism": _serial}
)
"""Every cause in the order it is tried, the most particular first."""


def _starving(cause: str, duty: float, evidence: Mapping[str, float]) -> Conclusion:
    return Conclusion(
        state="input_bound",
        cause=cause,
        summary=f"The card works {duty:.0%} of the time: {_SAYS[cause]}.",
        next_action=_NEXT[cause],
        evidence=evidence,
    )


def _underused(cause: str, duty: float, evidence: Mapping[str, float]) -> Conclusion:
    """Return that the card waits; ``waiting``, ``unexplained`` or, where its process cannot be seen, ``unseen``."""
    return Conclusion(
        state="underused",
        cause=cause,
        summary=f"The card works {duty:.0%} of the time, and its process does not wait for this host's CPUs or disks.",
        next_action="Look at what the process waits for: other nodes, a network, requests.",
        evidence=evidence,
    )


def _numbers(use: _Use) -> dict[str, float]:
    numbers = {"disk_pressure_ratio": use.disk_pressure, "blocked_threads": use.blocked_threads}
    if use.quota is not None:
        numbers |= {"quota_cores": use.quota, "throttled_periods_ratio": use.periods_throttled}
    return numbers


def _throttled(span: ProcessSpan) -> float:
    """Return the share of enforcement periods in which the quota ran out, 0 where unknown."""
    first, last = span.first.cgroup, span.last.cgroup
    if None in (first.periods, last.periods, first.throttled_periods, last.throttled_periods):
        return 0.0
    periods = (last.periods or 0) - (first.periods or 0)
    return ((last.throttled_periods or 0) - (first.throttled_periods or 0)) / periods if periods > 0 else 0.0


def _pressure(span: ProcessSpan) -> float:
    """Return the share of the span in which tasks of the group waited for a disk, 0 where unknown."""
    first_s, last_s = span.first.cgroup.io_pressure_s, span.last.cgroup.io_pressure_s
    if first_s is None or last_s is None:
        return 0.0
    return max(0.0, last_s - first_s) / span.seconds


RULE = CardRule(NAME, judge)
