"""One run of a probe child on one device, from the choice of interpreter to finished records."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog

from agent.clock import Clock
from agent.config.settings import ProbeSettings
from agent.errors import HeatsoakError
from agent.model.probe import PROTOCOL_VERSION, ChildEvent, ChildSpec, ProbeRecord
from agent.model.snapshot import Card, CardIdentity
from agent.model.text import clean_label
from agent.nvml.source import CardSource
from agent.probes.attribution import busy_s
from agent.probes.child import ChildCommand, ChildExit, run_child
from agent.probes.collector import Collector
from agent.probes.environment import Interpreter, InterpreterError, child_environment, find_interpreter
from agent.probes.job import Job
from agent.probes.memory import oom_kills
from agent.probes.outcome import LONGEST_DETAIL, Failure, failure_of
from agent.probes.package import installed_workloads, make_package
from agent.probes.scratch import Scratch
from agent.probes.watch import CardWatch

_LOGGED_OUTPUT: Final = 4000

_log = structlog.get_logger("probe")


class RunOutcome(msgspec.Struct, frozen=True):
    """What a run brought and what it cost."""

    records: tuple[ProbeRecord, ...]
    busy_s: float = 0.0
    """For how long the card worked, in seconds."""
    cpu_s: float = 0.0


class ProbeRunner:
    """Runs probe children, one at a time, in the caller's thread."""

    def __init__(
        self,
        settings: ProbeSettings,
        source: CardSource | None,
        clock: Clock,
        directory: Path,
        *,
        tenants: Callable[[Card], Sequence[int]],
        workloads: Path | None = None,
    ) -> None:
        """Take what is needed; ``directory`` keeps packed workloads, compilation caches and what children write.

        ``tenants`` tells which processes on a card are not ours, ``workloads`` is the package to run where
        it is not the installed one.
        """
        self._settings = settings
        self._source = source
        self._clock = clock
        self._directory = directory
        self._scratch = Scratch(directory / "scratch", clock)
        self._tenants = tenants
        self._workloads = workloads
        self._package: Path | None = None
        self._interpreter: Interpreter | None = None
        self._watch: CardWatch | None = None
        self._last_pid = 0

    def use(self, settings: ProbeSettings) -> None:
        """Take other settings, from the next run on."""
        self._settings = settings
        self._interpreter = None

    @property
    def sessions(self) -> tuple[int, ...]:
        """The session of the running or last child: its processes are ours."""
        pid = self._watch.pid if self._watch else self._last_pid
        return (pid,) if pid else ()

    def sweep(self) -> None:
        """Remove what runs left behind whose process was killed; each run does it as well."""
        self._scratch.sweep()

    def run(self, job: Job, abort: Callable[[], str], on_event: Callable[[ChildEvent], None]) -> RunOutcome:
        """Run a job to its end and return a record for each request at least; never raises for its faults."""
        watch = self._watch = CardWatch(job, self._source, self._clock, self._tenants, abort)
        try:
            return self._run(job, watch, Collector(job, self._clock, on_event))
        finally:
            self._last_pid, self._watch = watch.pid, None

    def _run(self, job: Job, watch: CardWatch, collector: Collector) -> RunOutcome:
        kills_before = oom_kills()
        try:
            ended = self._run_child(job, watch, collector)
        except (HeatsoakError, OSError) as error:
            failure = _failure_to_start(error, watch.reason)
            if failure.status == "error":
                _log.warning("probe_not_started", reason=failure.reason, detail=failure.detail)
            return RunOutcome(collector.records(failure, (), None))
        failure = failure_of(ended, oom_killed=oom_kills() > kills_before)
        records = collector.records(failure, watch.samples, ended)
        failed = [record.result for record in records if record.result.status in ("error", "timeout", "wrong_answer")]
        if failed:
            said = ended.output[-_LOGGED_OUTPUT:]
            _log.warning("probe_failed", reason=failed[0].reason, detail=failed[0].detail, output=said)
        return RunOutcome(records, busy_s(watch.samples), ended.cpu_s or 0.0)

    def _run_child(self, job: Job, watch: CardWatch, collector: Collector) -> ChildExit:
        settings = self._settings
        cache = self._directory / "cache"
        cache.mkdir(parents=True, exist_ok=True)
        self.sweep()
        with self._scratch.directory() as directory:
            interpreter = self._find_interpreter(directory, watch)
            identity = job.card.identity if job.card else CardIdentity(-1, "")
            visible = ",".join(card.identity.uuid for card in job.cards)
            environment = child_environment(interpreter, visible, job.threads, directory, os.environ)
            command = ChildCommand(
                argv=(*interpreter.argv, str(self._pack())),
                environment=environment,
                directory=directory,
                deadline_s=settings.deadline_s,
                stdin=msgspec.json.encode(_spec(job, identity, str(cache))),
            )
            return run_child(command, self._clock, watch.ask, collector.take)

    def _find_interpreter(self, directory: Path, watch: CardWatch) -> Interpreter:
        if self._interpreter is None:
            python, python_path = self._settings.python, self._settings.python_path
            self._interpreter = find_interpreter(python, python_path, directory, self._clock, watch.ask)
        return self._interpreter

    def _pack(self) -> Path:
        if self._package is None or not self._package.exists():
            self._package = make_package(self._workloads or installed_workloads(), self._directory)
        return self._package


def _failure_to_start(error: Exception, abort_reason: str) -> Failure:
    if abort_reason:
        return Failure("aborted", abort_reason)
    if isinstance(error, InterpreterError):
        return Failure("error", "interpreter_missing", clean_label(str(error), LONGEST_DETAIL))
    return Failure("error", f"failed:{type(error).__name__}", clean_label(str(error), LONGEST_DETAIL))


def _spec(job: Job, identity: CardIdentity, cache_dir: str) -> ChildSpec:
    return ChildSpec(
        version=PROTOCOL_VERSION,
        device="gpu" if job.card else "cpu",
        requests=job.requests,
        gpu_uuid=identity.uuid,
        pci_bus_id=identity.pci_bus_id,
        memory_limit_bytes=job.setup.memory_limit_bytes,
        threads=job.threads,
        cache_dir=cache_dir,
        companion_uuids=tuple(card.identity.uuid for card in job.setup.companions),
        replicas=job.setup.devices,
        reserve_all=job.setup.reserve_all,
    )
