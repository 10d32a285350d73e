"""The probe service: what runs when on which card, whether it may, and what came of it."""

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

import structlog

from agent.clock import Clock
from agent.config.settings import PipelineSettings, ProbeSettings
from agent.model.metrics import Sample
from agent.model.probe import ChildEvent, DeviceKind, ProbeRecord, ProbeRequest
from agent.model.reference import Series
from agent.model.snapshot import GpuProcess, Snapshot
from agent.nvml.source import CardSource
from agent.probes.backoff import EnvironmentBackoff
from agent.probes.cards import Cards
from agent.probes.catch_up import CatchUp
from agent.probes.counts import Counts
from agent.probes.history import LastRecords
from agent.probes.job import Job
from agent.probes.memory import needed_mib, why_not_host
from agent.probes.outcome import Failure, failed_result
from agent.probes.plan import DAY_S, JUDGED, SUSPICION_DELAYS_S, SUSPICION_RUNS, Plan, plans
from agent.probes.policy import cpus_are_idle
from agent.probes.runner import ProbeRunner
from agent.probes.schedule import Schedule
from agent.probes.tenants import tenants

SETTLE_S: Final = 5.0
"""For how long after a run the card's readings may still show our own work."""

_log = structlog.get_logger("probe")


def _nobody() -> Collection[str]:
    return ()


class ProbeService:
    """Probes idle cards by schedule, one at a time, and keeps count; ``observe`` feeds it each tick."""

    def __init__(
        self,
        settings: ProbeSettings,
        pipeline: PipelineSettings,
        source: CardSource | None,
        clock: Clock,
        directory: Path,
        sink: Callable[[ProbeRecord], None],
        *,
        paused: Callable[[], Collection[str]] = _nobody,
        allocated: Callable[[], Collection[str] | None] = _nobody,
        workloads: Path | None = None,
    ) -> None:
        """Take the parts; nothing runs before ``start``.

        ``directory`` keeps packed workloads and compilation caches; ``sink`` gets every finished record, in
        the probing thread; ``paused`` and ``allocated`` name cards, by UUID, that an operator paused and
        that a scheduler gave away.
        """
        self._settings = settings
        self._pipeline = pipeline
        self._clock = clock
        self._sink = sink
        self._paused = paused
        self._allocated = allocated
        self._cards = Cards(settings, self._sessions)
        self._runner = ProbeRunner(settings, source, clock, directory, tenants=self._cards.tenants, workloads=workloads)
        self._schedule = Schedule(clock)
        self._counts = Counts(scheduled=settings.enabled)
        self._backoff = EnvironmentBackoff(settings.interval_s)
        self._catch_up = CatchUp(settings.interval_s)
        self._last = LastRecords()
        self._stopping = threading.Event()
        self._free = threading.Lock()
        self._ours: tuple[str, float] = ("", 0.0)
        """The card of our last run, and until when its readings may show that run."""

    def remember(self, records: Iterable[ProbeRecord]) -> None:
        """Take what earlier runs of the agent measured, oldest first; a restart makes no card unprobed."""
        for record in records:
            self._last.add(record)

    def start(self) -> None:
        """Start the schedule; on the CPU, or as soon as ``observe`` has seen a card, probes follow."""
        self._runner.sweep()
        self._schedule.start()
        if self._settings.enabled and self._settings.device == "cpu":
            self._add_jobs("cpu")

    def stop(self, timeout_s: float = 2.0) -> None:
        """End the running child and start no other; return within ``timeout_s`` even where it lives on."""
        self._stopping.set()
        self._schedule.stop()
        if self._free.acquire(timeout=timeout_s):
            self._free.release()

    def observe(self, snapshot: Snapshot) -> None:
        """Take in what a tick saw; to be called once a tick."""
        self._schedule.check_clock()
        self._cards.observe(snapshot, {self._ours[0]} if self._settling() else ())
        for card in snapshot.cards:
            self._counts.see_card(card.identity.index, card.identity.uuid)
        if self._settings.enabled and self._settings.device == "gpu":
            known = {name.partition(" ")[0] for name in self._schedule.names()}
            for card in snapshot.cards:
                if card.identity.uuid not in known:
                    self._add_jobs(card.identity.uuid)
            self._catch_up_where_idle(snapshot.taken_monotonic_s)

    def reconfigure(self, settings: ProbeSettings, pipeline: PipelineSettings) -> None:
        """Take other settings; where they differ, the schedule starts anew. A running child goes on."""
        if (settings, pipeline) == (self._settings, self._pipeline):
            return
        self._settings, self._pipeline = settings, pipeline
        self._cards.settings = settings
        self._runner.use(settings)
        self._backoff = EnvironmentBackoff(settings.interval_s)
        self._catch_up = CatchUp(settings.interval_s)
        for name in self._schedule.names():
            self._schedule.cancel(name)
        if settings.enabled and settings.device == "cpu":
            self._add_jobs("cpu")

    @property
    def running(self) -> bool:
        """Whether a child is running."""
        return self._free.locked()

    @property
    def environment_error(self) -> str:
        """The reason for which probes cannot run on this node, empty where they can or were not tried."""
        return self._backoff.reason

    def records(self) -> tuple[ProbeRecord, ...]:
        """Return the last record of each kind."""
        return self._last.all()

    def values(self) -> Mapping[tuple[str, Series], tuple[float, ...]]:
        """Return the latest good values of each figure, by the card's UUID and the series."""
        return self._last.values()

    def counts(self) -> tuple[Sample, ...]:
        """Return counters and gauges of the schedule."""
        due_s = self._schedule.next_due_s()
        to_wall_s = self._clock.wall_s() - self._clock.monotonic_s()
        return self._counts.samples(
            budget=self._settings.duty_budget,
            next_wall_s=None if due_s is None else due_s + to_wall_s,
            running=self.running,
            environment_broken=bool(self.environment_error),
        )

    def foreign(self, processes: Collection[GpuProcess]) -> tuple[GpuProcess, ...]:
        """Return the processes that are not our own probe's."""
        return tenants(processes, sessions=self._sessions(), desktop_at_rest=False)

    def suspect(self, uuid: str) -> None:
        """Measure a card again in 5 and in 15 minutes, twice each time, unless that is planned already."""
        for delay_s in SUSPICION_DELAYS_S:
            name = f"{uuid} suspicion {delay_s:.0f}"
            if name not in self._schedule.names():
                self._schedule.once(name, lambda: self._run_suspect(uuid), delay_s=delay_s)

    def run_now(
        self,
        requests: tuple[ProbeRequest, ...],
        uuid: str | None,
        trigger: str,
        on_event: Callable[[ChildEvent], None],
        *,
        threads: int = 0,
        yield_to_tenants: bool = False,
    ) -> tuple[ProbeRecord, ...]:
        """Run one child now, in the caller's thread, on the card ``uuid`` or the CPU (None).

        Whether the card is at rest is the caller's business. Waits for a running child to end. Nothing runs,
        and the records say so, on a card that ``observe`` has not seen and where host memory is short.
        """
        card = self._cards.get(uuid) if uuid else None
        reason = "no_telemetry" if uuid and card is None else self._why_not_host(requests, uuid or "cpu")
        if reason:
            return self._skip(requests, uuid or "cpu", reason, trigger)
        job = Job(requests=requests, card=card, trigger=trigger, threads=threads, yield_to_tenants=yield_to_tenants)
        return self._run(job, on_event)

    def why_not(self, uuid: str, *, scheduled: bool = True) -> str | None:
        """Return the reason why a card is not probed now; None where it may be.

        The duty budget counts for ``scheduled`` runs only.
        """
        now_s = self._clock.monotonic_s()
        return self._cards.why_not(
            uuid,
            now_s,
            paused=self._paused(),
            allocated=self._allocated(),
            busy_s=self._counts.busy_in_day_s(uuid, now_s),
            budget_s=self._settings.duty_budget * DAY_S if scheduled else float("inf"),
        )

    def _add_jobs(self, uuid: str) -> None:
        """Put a device on the schedule; the plans of a day start between two of an hour."""
        settings = self._settings
        for plan in plans(settings.device, daily=settings.daily, data_dir=self._pipeline.data_dir):
            name = f"{'node' if plan.whole_node else uuid} {plan.name}"
            if name in self._schedule.names():
                continue
            hourly = plan.name == "hourly"
            self._schedule.every(
                name,
                lambda plan=plan: self._run_plan(uuid, plan, "schedule"),  # type: ignore[misc]
                delay_s=settings.first_delay_s + (0.0 if hourly else settings.interval_s / 2),
                interval_s=settings.interval_s if hourly else DAY_S,
                jitter=settings.jitter,
            )

    def _catch_up_where_idle(self, now_s: float) -> None:
        """Ask for the judged pair on cards that are idle now and were not when it was due."""
        for uuid in self._catch_up.due(now_s):
            if self.why_not(uuid) is None:
                self._catch_up.attempt(uuid)
                self._schedule.once(
                    f"{uuid} catch-up",
                    lambda uuid=uuid: self._run_plan(uuid, JUDGED, "schedule"),  # type: ignore[misc]
                    delay_s=0.0,
                )

    def _run_plan(self, uuid: str, plan: Plan, trigger: str) -> None:
        """Run a plan on a device if it may be run now, else count why not.

        What needs the whole node runs on its first card, whichever that is by now.
        """
        if plan.whole_node and self._cards.all():
            uuid = self._cards.all()[0].identity.uuid
        reason = self._why_not_plan(uuid, plan, trigger)
        if reason:
            records = self._skip(plan.requests, uuid, reason, trigger)
        else:
            threads = 0 if plan.whole_node else self._settings.threads
            job = Job(requests=plan.requests, card=self._cards.get(uuid), trigger=trigger, threads=threads)
            records = self._run(job, lambda _event: None)
        if plan is JUDGED:
            self._catch_up.learn(uuid, [record.result for record in records], self._clock.monotonic_s())

    def _run_suspect(self, uuid: str) -> None:
        for _ in range(SUSPICION_RUNS):
            self._run_plan(uuid, JUDGED, "suspicion")

    def _why_not_plan(self, uuid: str, plan: Plan, trigger: str) -> str | None:
        if self._backoff.holds(uuid, self._clock.monotonic_s()):
            return "environment_backoff"
        if uuid != "cpu":
            reason = self.why_not(uuid, scheduled=trigger == "schedule")
            if reason:
                return reason
        if plan.whole_node and not self._node_is_idle():
            return "host_busy"
        return self._why_not_host(plan.requests, uuid)

    def _why_not_host(self, requests: tuple[ProbeRequest, ...], uuid: str) -> str | None:
        device: DeviceKind = "cpu" if uuid == "cpu" else "gpu"
        return why_not_host(needed_mib(requests, device, self._settings.host_memory_mib))

    def _node_is_idle(self) -> bool:
        cards = self._cards.all()
        at_rest = not any(self.why_not(card.identity.uuid, scheduled=False) for card in cards)
        return at_rest and cpus_are_idle(os.getloadavg()[0], os.cpu_count() or 1)

    def _run(self, job: Job, on_event: Callable[[ChildEvent], None]) -> tuple[ProbeRecord, ...]:
        """Run one child and account for it; whoever waits for the run waits for its records too."""
        uuid = job.card.identity.uuid if job.card else "cpu"
        with self._free:
            self._ours = (uuid, float("inf"))
            outcome = self._runner.run(job, lambda: self._why_abort(uuid), on_event)
            now_s = self._clock.monotonic_s()
            self._ours = (uuid, now_s + SETTLE_S)
            if job.card:
                self._counts.worked(job.card.identity.index, uuid, outcome.busy_s, now_s)
            self._counts.used_cpu(outcome.cpu_s)
            self._backoff.learn(uuid, [record.result for record in outcome.records], now_s)
            for record in outcome.records:
                self._finish(record)
        return outcome.records

    def _settling(self) -> bool:
        """Return whether readings may still show our own work."""
        return self._clock.monotonic_s() < self._ours[1]

    def _sessions(self) -> Collection[int]:
        return self._runner.sessions if self._settling() else ()

    def _why_abort(self, uuid: str) -> str:
        if self._stopping.is_set():
            return "shutting_down"
        if uuid in self._paused():
            return "maintenance"
        return "tenant_arrived" if uuid in (self._allocated() or ()) else ""

    def _skip(
        self, requests: tuple[ProbeRequest, ...], uuid: str, reason: str, trigger: str
    ) -> tuple[ProbeRecord, ...]:
        _log.debug("probe_skipped", uuid=uuid, reason=reason)
        card = self._cards.get(uuid)
        records = tuple(
            ProbeRecord(
                wall_s=self._clock.wall_s(),
                gpu=card.identity.index if card else None,
                uuid=uuid,
                result=failed_result(request, Failure("skipped", reason)),
                trigger=trigger,
            )
            for request in requests
        )
        for record in records:
            self._finish(record)
        return records

    def _finish(self, record: ProbeRecord) -> None:
        """Count a record, keep it and hand it on."""
        result = record.result
        self._counts.ran(result.probe, result.status, result.reason)
        self._last.add(record)
        self._sink(record)
        if result.status != "skipped":
            _log.info(
                "probe_finished",
                uuid=record.uuid,
                probe=result.probe,
                dtype=result.dtype,
                status=result.status,
                reason=result.reason,
                value=result.value,
                unit=result.unit,
            )
