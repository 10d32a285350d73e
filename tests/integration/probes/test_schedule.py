"""The schedule under stress: wall clock set, machine suspended, jobs that raise; each job runs on time, once."""

import datetime as dt
import os
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise

import apscheduler.schedulers.base
import pytest
from structlog.testing import capture_logs

from agent.clock import SystemClock
from agent.probes.schedule import Schedule

DAY_S = 86400.0


class SteppedClock(SystemClock):
    """The machine's clocks, the wall clock moved by ``step_s``."""

    step_s = 0.0

    def wall_s(self) -> float:
        """Return the moved time."""
        return super().wall_s() + self.step_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteppedClock:
    """Return a clock whose steps APScheduler sees as well."""
    stepped = SteppedClock()

    class SteppedDatetime(dt.datetime):
        @classmethod
        def now(cls, tz: dt.tzinfo | None = None) -> "SteppedDatetime":
            return cls.fromtimestamp(stepped.wall_s(), tz)

    monkeypatch.setattr(apscheduler.schedulers.base, "datetime", SteppedDatetime)
    return stepped


@pytest.fixture
def schedule(clock: SteppedClock) -> Iterator[Schedule]:
    """Return a running schedule."""
    made = Schedule(clock, draw=lambda: 0.5)
    made.start()
    yield made
    made.stop()


def wait_for(condition: Callable[[], bool], most_s: float = 10.0) -> None:
    """Wait until something holds.

    Raises:
        AssertionError: It does not in time.
    """
    until_s = time.monotonic() + most_s
    while not condition():
        assert time.monotonic() < until_s, "waited in vain"
        time.sleep(0.01)


def test_job_runs_again_and_again(schedule: Schedule) -> None:
    """At the interval given, from the delay given."""
    runs: list[float] = []
    start_s = time.monotonic()
    schedule.every("a", lambda: runs.append(time.monotonic() - start_s), delay_s=0.2, interval_s=0.3, jitter=0.0)
    wait_for(lambda: len(runs) >= 3)
    assert 0.15 < runs[0] < 1.0
    assert runs[2] >= 0.7


@pytest.mark.parametrize("step_s", [-30.0, -20 * DAY_S, 30.0, 20 * DAY_S])
def test_setting_the_wall_clock_moves_no_run(schedule: Schedule, clock: SteppedClock, step_s: float) -> None:
    """No pause after a step back, no flood after a step forward, little time and memory spent."""
    runs: list[float] = []
    schedule.every("a", lambda: runs.append(time.monotonic()), delay_s=0.1, interval_s=0.5, jitter=0.0)
    wait_for(lambda: len(runs) == 1)
    tracemalloc.start()
    cpu_s = time.process_time()
    clock.step_s = step_s
    with capture_logs() as logs:
        schedule.check_clock()
    wait_for(lambda: len(runs) >= 4)
    gaps = [later - sooner for sooner, later in pairwise(runs)]
    assert min(gaps) > 0.25
    assert max(gaps) < 1.5
    assert time.process_time() - cpu_s < 2.0
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()
    assert [entry["step_s"] for entry in logs] == [pytest.approx(step_s, abs=0.1)]


def test_a_step_forward_that_nobody_noticed_yet_runs_nothing_early(schedule: Schedule, clock: SteppedClock) -> None:
    """APScheduler may wake up before the step is noticed; the monotonic clock decides."""
    runs: list[float] = []
    schedule.every("a", lambda: runs.append(time.monotonic()), delay_s=0.8, interval_s=10.0, jitter=0.0)
    start_s = time.monotonic()
    clock.step_s = DAY_S
    schedule.once("b", lambda: None, delay_s=0.0)
    wait_for(lambda: len(runs) == 1)
    assert runs[0] - start_s > 0.6


def test_small_corrections_arm_nothing(schedule: Schedule, clock: SteppedClock) -> None:
    """What NTP does every day is no step."""
    schedule.every("a", lambda: None, delay_s=100.0, interval_s=100.0, jitter=0.0)
    clock.step_s = 0.4
    with capture_logs() as logs:
        schedule.check_clock()
    assert logs == []


def test_a_job_that_raises_runs_again(schedule: Schedule) -> None:
    """The fault is logged with the job's name."""
    runs: list[int] = []

    def fail() -> None:
        runs.append(1)
        raise RuntimeError(len(runs))

    with capture_logs() as logs:
        schedule.every("broken", fail, delay_s=0.0, interval_s=0.1, jitter=0.0)
        wait_for(lambda: len(runs) >= 2)
    assert logs[0]["job"] == "broken"


def test_jobs_run_one_at_a_time(schedule: Schedule) -> None:
    """Two due at once follow each other."""
    inside = threading.Lock()
    overlaps: list[bool] = []

    def work() -> None:
        overlaps.append(not inside.acquire(blocking=False))
        time.sleep(0.1)
        inside.release()

    for name in "abc":
        schedule.once(name, work, delay_s=0.0)
    wait_for(lambda: len(overlaps) == 3)
    assert not any(overlaps)


def test_a_long_run_is_followed_by_no_flood(schedule: Schedule) -> None:
    """Runs missed meanwhile are not made up for."""
    runs: list[float] = []

    def work() -> None:
        runs.append(time.monotonic())
        if len(runs) == 1:
            time.sleep(1.0)

    schedule.every("a", work, delay_s=0.0, interval_s=0.2, jitter=0.0)
    wait_for(lambda: len(runs) >= 3)
    assert runs[2] - runs[1] > 0.1


def test_one_shots_and_cancelled_jobs_are_gone(schedule: Schedule) -> None:
    """What will not run again has no name and no date."""
    ran = threading.Event()
    schedule.once("once", ran.set, delay_s=0.0)
    schedule.every("never", lambda: None, delay_s=100.0, interval_s=100.0, jitter=0.0)
    due_s = schedule.next_due_s()
    assert due_s is not None
    assert ran.wait(5.0)
    wait_for(lambda: schedule.names() == {"never"})
    schedule.cancel("never")
    assert schedule.names() == frozenset()
    assert schedule.next_due_s() is None


def test_stopping_does_not_wait_for_a_run() -> None:
    """Who stops ends the run by other means."""
    schedule = Schedule(SystemClock())
    started, go_on = threading.Event(), threading.Event()
    schedule.start()

    def work() -> None:
        started.set()
        go_on.wait(5.0)

    schedule.every("a", work, delay_s=0.0, interval_s=0.1, jitter=0.0)
    assert started.wait(5.0)
    start_s = time.monotonic()
    schedule.stop()
    assert time.monotonic() - start_s < 1.0
    go_on.set()
    schedule.once("late", lambda: None, delay_s=0.0)
    assert schedule.names() == frozenset()


@pytest.mark.parametrize("zone", ["Asia/Kathmandu", "Pacific/Apia", "Nowhere/Atall"])
def test_odd_time_zones_change_nothing(zone: str) -> None:
    """The calendar is kept in UTC; the machine's zone is not even read."""
    script = (
        "import threading\nfrom agent.clock import SystemClock\nfrom agent.probes.schedule import Schedule\n"
        "ran = threading.Event()\nschedule = Schedule(SystemClock())\nschedule.start()\n"
        "schedule.once('a', ran.set, delay_s=0.1)\nassert ran.wait(10)\nschedule.stop()\n"
    )
    environment = {**os.environ, "TZ": zone}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment, timeout=60)


def test_suspended_process_makes_up_for_one_run_of_each_job() -> None:
    """After SIGSTOP each job runs exactly once at once, then in its rhythm."""
    script = (
        "import time\nfrom agent.clock import SystemClock\nfrom agent.probes.schedule import Schedule\n"
        "schedule = Schedule(SystemClock(), draw=lambda: 0.5)\nschedule.start()\n"
        "for name in 'ab':\n"
        "    schedule.every(name, lambda name=name: print(name, time.monotonic(), flush=True),\n"
        "                   delay_s=0.0, interval_s=2.0, jitter=0.0)\n"
        "time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for _ in range(2):
                process.stdout.readline()
            time.sleep(0.5)  # let both runs end: one cut in two by the pause is its own catch-up
            process.send_signal(signal.SIGSTOP)
            time.sleep(6.0)
            resumed_s = time.monotonic()
            process.send_signal(signal.SIGCONT)
            runs = [process.stdout.readline().split() for _ in range(4)]
        finally:
            process.kill()
    for name in "ab":
        at_once, later = (float(when) - resumed_s for who, when in runs if who == name)
        assert at_once < 1.5
        assert later - at_once > 1.5
