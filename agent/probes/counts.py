"""What the probe schedule has done so far, as counters and gauges."""

import threading
from collections import Counter, deque
from collections.abc import Iterable
from typing import Final

from agent.model.metrics import Metric, Sample
from agent.model.probe import ProbeName
from agent.model.vocabulary import PROBE_REASONS
from agent.probes.plan import DAY_S

_RUNS: Final = "heatsoak_probe_runs_total"
_BUSY: Final = "heatsoak_probe_busy_seconds_total"
_CPU: Final = "heatsoak_probe_child_cpu_seconds_total"
_BUDGET: Final = "heatsoak_probe_duty_budget_ratio"
_NEXT: Final = "heatsoak_probe_next_run_timestamp_seconds"
_RUNNING: Final = "heatsoak_probe_running"
_BROKEN: Final = "heatsoak_probe_environment_broken"
METRICS: Final = (
    Metric(
        _RUNS,
        "Measurements by result; the reasons are listed with their meanings in the documentation.",
        "counter",
        ("probe", "status", "reason"),
    ),
    Metric(_BUSY, "Time probes kept the card at work.", "counter", ("gpu", "uuid")),
    Metric(_CPU, "CPU time of all probe children.", "counter"),
    Metric(_BUDGET, "Largest share of a card's time that scheduled probes may take over a day.", "gauge"),
    Metric(_NEXT, "When the next scheduled probe is due; absent while none is scheduled.", "gauge"),
    Metric(_RUNNING, "Whether a probe is running.", "gauge"),
    Metric(_BROKEN, "Whether the last probes of all devices failed for reasons of the software environment.", "gauge"),
)
_FROM_THE_START: Final = ("matmul", "resnet50")
"""The probes every node schedules: their results are counted from 0, so that a first failure is a rise."""

Key = tuple[str, str, str]


class Counts:
    """Counted by the probing thread, read by the loop."""

    def __init__(self, *, scheduled: bool) -> None:
        """Start at 0; with every result of the usual probes present where any are ``scheduled``."""
        self._lock = threading.Lock()
        self._runs: Counter[Key] = Counter()
        self._busy_s: dict[tuple[str, str], float] = {}
        self._recent: dict[str, deque[tuple[float, float]]] = {}
        self._cpu_s = 0.0
        if scheduled:
            for status, reasons in PROBE_REASONS.items():
                for reason in reasons or ("",):
                    self._runs.update({(probe, status, reason): 0 for probe in _FROM_THE_START})

    def ran(self, probe: ProbeName, status: str, reason: str) -> None:
        """Count one measurement; what follows a colon in ``reason`` is left out."""
        with self._lock:
            self._runs[(probe, status, reason.partition(":")[0])] += 1

    def see_card(self, gpu: int, uuid: str) -> None:
        """Have a card's busy time present, at 0 before its first probe."""
        with self._lock:
            self._busy_s.setdefault((str(gpu), uuid), 0.0)

    def worked(self, gpu: int, uuid: str, busy_s: float, now_s: float) -> None:
        """Add time a probe kept a card at work, ended at ``now_s`` on the monotonic clock."""
        with self._lock:
            key = (str(gpu), uuid)
            self._busy_s[key] = self._busy_s.get(key, 0.0) + busy_s
            self._recent.setdefault(uuid, deque()).append((now_s, busy_s))

    def used_cpu(self, cpu_s: float) -> None:
        """Add CPU time of a child."""
        with self._lock:
            self._cpu_s += cpu_s

    def busy_in_day_s(self, uuid: str, now_s: float) -> float:
        """Return for how long probes kept a card at work in the last 24 hours, in seconds."""
        with self._lock:
            recent = self._recent.get(uuid, deque())
            while recent and now_s - recent[0][0] > DAY_S:
                recent.popleft()
            return sum(busy_s for _, busy_s in recent)

    def samples(
        self, *, budget: float, next_wall_s: float | None, running: bool, environment_broken: bool
    ) -> tuple[Sample, ...]:
        """Return all of it."""
        with self._lock:
            rows: Iterable[Sample] = (
                *(Sample(_RUNS, float(count), key) for key, count in self._runs.items()),
                *(Sample(_BUSY, value, key) for key, value in self._busy_s.items()),
                Sample(_CPU, self._cpu_s),
                Sample(_BUDGET, budget),
                Sample(_RUNNING, float(running)),
                Sample(_BROKEN, float(environment_broken)),
                *(() if next_wall_s is None else (Sample(_NEXT, next_wall_s),)),
            )
            return tuple(rows)
