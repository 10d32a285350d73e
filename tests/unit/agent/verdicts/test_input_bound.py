"""Tests of agent.verdicts.input_bound, against the recorded training runs first of all."""

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.config.settings import Settings, VerdictSettings
from agent.model.process import CgroupReading, HostCpuReading, ProcessReading, ProcessReport
from agent.model.snapshot import GpuProcess, NvmlHealth, Snapshot
from agent.model.verdict import CardVerdict
from agent.verdicts import input_bound
from agent.verdicts.engine import Engine, Rules
from agent.verdicts.view import Conclusion, Facts
from tests.support.clock import FakeClock
from tests.support.snapshots import busy_values, uuid_of
from tests.support.views import THRESHOLDS, MemoryDocuments, card_of, span_of, steady, view_of

PHASES: dict[str, Any] = json.loads((Path(__file__).parent / "data/input_bound.json").read_text())["phases"]
COUNTERS = ("cpu_s", "host_idle_s", "io_pressure_s", "periods", "throttled_periods")
HALF_SECOND_ROWS = 2
SWEEP_S = 5
TRUTH = {
    "synthetic": ("ok", ""),
    "serial": ("input_bound", "parallelism"),
    "autotuned_all_cores": ("ok", ""),
    "autotuned_pinned_4": ("input_bound", "cpuset"),
    "autotuned_quota_2_cores": ("input_bound", "cgroup_quota"),
}


class Training:
    """Plays recorded phases to an engine, a tick a second; a phase that is too short goes round."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self.clock = FakeClock()
        settings = Settings(verdicts=VerdictSettings(rules={"unjudged": "off"}))
        self.engine = Engine(settings, Rules(), MemoryDocuments(), self.clock)
        self.totals = dict.fromkeys(COUNTERS, 0.0)
        self.report: ProcessReport | None = None
        self.pid = 100

    def play(self, phase: str, seconds: int) -> list[CardVerdict]:
        """Return the verdict of each second."""
        return [self.tick(PHASES[phase], row) for row in self.take(phase, seconds)]

    def take(self, phase: str, seconds: int) -> Iterator[dict[str, Any]]:
        """Yield the phase's rows of so many seconds."""
        return itertools.islice(self.rows(PHASES[phase]), seconds)

    def rows(self, recorded: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield a row a second; counters go on rising from round to round."""
        rows = recorded["rows"][::HALF_SECOND_ROWS]
        for before, row in itertools.cycle(list(itertools.pairwise(rows))):
            for key in COUNTERS:
                if row[key] is not None:
                    self.totals[key] += row[key] - before[key]
            yield row

    def tick(self, recorded: dict[str, Any], row: dict[str, Any]) -> CardVerdict:
        """Judge one second."""
        self.clock.advance(1.0)
        now_s = self.clock.monotonic_s()
        if self.report is None or now_s - self.report.host.taken_monotonic_s >= SWEEP_S:
            self.report = self.sweep(recorded, row, now_s)
        card = card_of(0, busy_values(utilization_ratio=row["utilization_ratio"]), first_pid=self.pid)
        snapshot = Snapshot(now_s, self.clock.wall_s(), cards=(card,), nvml=NvmlHealth(up=True))
        return self.engine.judge(snapshot, Facts(processes=self.report)).cards[0]

    def sweep(self, recorded: dict[str, Any], row: dict[str, Any], now_s: float) -> ProcessReport:
        """Return what the process reader would have said."""
        quota = recorded["quota_cores"]
        process = ProcessReading(
            pid=self.pid,
            started_s=1.0,
            gpus=(uuid_of(0),),
            taken_monotonic_s=now_s,
            cpu_s=self.totals["cpu_s"],
            allowed_cores=recorded["allowed_cores"],
            running_threads=row["running_threads"],
            blocked_threads=row["blocked_threads"],
            main_state=row["main_state"],
            cgroup=CgroupReading(
                quota_cores=quota,
                periods=None if quota is None else int(self.totals["periods"]),
                throttled_periods=None if quota is None else int(self.totals["throttled_periods"]),
                io_pressure_s=self.totals["io_pressure_s"],
            ),
        )
        return ProcessReport(HostCpuReading(now_s, recorded["host_cores"], self.totals["host_idle_s"]), (process,))


def cause_of(verdict: CardVerdict) -> str:
    """Return the cause given for the workload, empty without one."""
    return next((finding.cause for finding in verdict.findings if finding.rule == input_bound.NAME), "")


@pytest.mark.parametrize("phase", TRUTH)
def test_each_recorded_training_is_seen_for_what_it_is(phase: str) -> None:
    """Within a minute from the first reading, and then without wavering."""
    verdicts = Training().play(phase, 150)

    assert {(verdict.workload, cause_of(verdict)) for verdict in verdicts[60:]} == {TRUTH[phase]}
    assert {verdict.state for verdict in verdicts[3:]} == {"ok"}


@pytest.mark.parametrize(("bad", "good"), [("serial", "synthetic"), ("autotuned_pinned_4", "autotuned_all_cores")])
def test_starving_is_seen_and_gone_within_a_minute(bad: str, good: str) -> None:
    """A pipeline that breaks, and one that is repaired."""
    training = Training()
    before = training.play(good, 90)
    during = training.play(bad, 90)
    after = training.play(good, 90)

    assert {verdict.workload for verdict in before[30:]} == {"ok"}
    assert {(verdict.workload, cause_of(verdict)) for verdict in during[60:]} == {TRUTH[bad]}
    assert {verdict.workload for verdict in after[60:]} == {"ok"}


def judged(utilization: float, *spans: object, **changes: object) -> Conclusion | None:
    """Return the rule's answer for a card at a steady utilisation."""
    view = view_of(steady(busy_values(utilization_ratio=utilization)), spans=spans, **changes)  # type: ignore[arg-type]
    return input_bound.judge(view, THRESHOLDS)


@pytest.mark.parametrize(
    ("span", "state", "cause"),
    [
        (span_of(1.2), "input_bound", "parallelism"),
        (span_of(3.9, allowed=4), "input_bound", "cpuset"),
        (span_of(1.9, quota=2.0, throttled=1.0), "input_bound", "cgroup_quota"),
        (span_of(1.2, quota=2.0, throttled=0.02), "input_bound", "parallelism"),
        (span_of(5.0, host_used=0.95), "input_bound", "host_cpu"),
        (span_of(15.0, host_used=0.97), "input_bound", "host_cpu"),
        (span_of(0.3, io=0.6), "input_bound", "io"),
        (span_of(0.3, io=None, blocked=1.0), "input_bound", "io"),
        (span_of(0.3), "underused", "unexplained"),
        (span_of(0.01, host_used=0.99), "underused", "unexplained"),
    ],
)
def test_the_cause_is_named_from_what_the_process_does(span: object, state: str, cause: str) -> None:
    """One case for each cause, and for none."""
    conclusion = judged(0.3, span)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == (state, cause)
    assert conclusion.evidence["utilization_ratio"] == pytest.approx(0.3)
    assert conclusion.evidence["threshold_ratio"] == 0.75


@pytest.mark.parametrize("utilization", [0.76, 0.93, 1.0])
def test_a_card_that_works_is_not_starving(utilization: float) -> None:
    """Whatever its process does."""
    assert judged(utilization, span_of(1.2)) is None


def test_no_process_no_workload() -> None:
    """An idle card does not starve; neither does a desktop."""
    assert judged(0.1, processes=()) is None
    assert judged(0.1, span_of(1.5), processes=(GpuProcess(1, "graphics"),)) is None


def test_a_card_that_hardly_works_is_not_called_starving() -> None:
    """Loading and compiling use the CPU without wanting the card."""
    view = view_of([busy_values(utilization_ratio=float(n % 10 == 0)) for n in range(60)], spans=(span_of(12.0),))
    conclusion = input_bound.judge(view, THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("underused", "waiting")


def test_the_start_of_a_job_is_not_starvation() -> None:
    """Twelve seconds before the first step, then full load: the mean is low, and nothing waits for input."""
    rows = [busy_values(utilization_ratio=0.0)] * 12 + [busy_values(utilization_ratio=1.0)] * 18
    view = view_of([busy_values(utilization_ratio=0.0)] * 30 + rows, spans=(span_of(1.3),))

    assert input_bound.judge(view, THRESHOLDS) is None


def test_without_sight_of_the_process_nothing_is_blamed() -> None:
    """In a container without the host's pid namespace."""
    conclusion = judged(0.3)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("underused", "unseen")


def test_a_process_that_came_a_moment_ago_is_not_judged() -> None:
    """What the card did before says nothing of it."""
    assert judged(0.3, span_of(1.2, seconds=20)) is None
    assert judged(0.3, span_of(1.2, seconds=26)) is not None


def test_what_comes_and_goes_beside_a_job_hides_nothing() -> None:
    """A process that came a moment ago is not judged itself, and keeps no other from it."""
    starving = judged(0.3, span_of(1.2), span_of(0.1, seconds=10))
    assert starving is not None
    assert (starving.state, starving.cause) == ("input_bound", "parallelism")
    resting = judged(0.3, span_of(0.1), span_of(1.2, seconds=10))
    assert resting is not None
    assert (resting.state, resting.cause) == ("underused", "unexplained")


@pytest.mark.parametrize("bad", ["serial", "autotuned_pinned_4"])
@pytest.mark.parametrize("moment", range(SWEEP_S))
def test_a_job_is_not_blamed_for_the_one_before_it(bad: str, moment: int) -> None:
    """A starving job ends, a sound one loads and starts, at any moment between two sweeps: nothing is said of it."""
    training = Training()
    training.play(bad, 90 + moment)
    training.pid = 101
    loading = [row | {"utilization_ratio": 0.0} for row in training.take("synthetic", 5)]
    idle = [training.tick(PHASES["synthetic"], row) for row in loading]
    after = training.play("synthetic", 60)

    assert {verdict.workload for verdict in idle + after} == {"ok"}


def test_what_starves_must_recover_clearly() -> None:
    """At 78 % nothing begins and nothing ends."""
    assert judged(0.78, span_of(1.2)) is None
    assert judged(0.78, span_of(1.2), held=frozenset({input_bound.NAME})) is not None
    assert judged(0.82, span_of(1.2), held=frozenset({input_bound.NAME})) is None


def test_the_hardest_working_process_explains_first() -> None:
    """Two processes share a card; one of them computes."""
    conclusion = judged(0.3, span_of(0.05), span_of(1.3))

    assert conclusion is not None
    assert conclusion.cause == "parallelism"
    assert conclusion.evidence["process_cores"] == pytest.approx(1.3)


def test_a_short_history_says_nothing() -> None:
    """Twenty seconds are not thirty."""
    view = view_of(steady(busy_values(utilization_ratio=0.1), 20), spans=(span_of(1.2),))

    assert input_bound.judge(view, THRESHOLDS) is None


def test_every_cause_has_its_words() -> None:
    """A summary and a next action for each."""
    assert input_bound._CAUSES.keys() == input_bound._NEXT.keys() == input_bound._SAYS.keys()
