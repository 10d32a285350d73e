"""When what runs: APScheduler's threads on a calendar kept by the monotonic clock.

APScheduler thinks in wall time: set the clock back and nothing runs until it has caught up, set it forward
and an interval job makes up for every run it believes it missed. So each job here is armed as a single date,
the wall time that the monotonic clock gives *now*, and armed again when the two clocks part.
"""

import logging
import random
import threading
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Final

import msgspec
import structlog
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.triggers.date import DateTrigger

from agent.clock import Clock
from agent.probes.plan import next_due_s

CLOCK_STEP_S: Final = 1.0
"""When wall and monotonic time have parted by more, the jobs are armed anew."""
_EARLY_S: Final = 0.05
_NO_LIMIT: Final = 1000
"""One thread keeps runs apart; a limit would drop a job that its own run arms again."""

_log = structlog.get_logger("probe")


class _Entry(msgspec.Struct, frozen=True):
    """One job: due on the monotonic clock, again every ``interval_s`` seconds unless that is 0."""

    function: Callable[[], None]
    due_s: float
    interval_s: float = 0.0
    jitter: float = 0.0


class Schedule:
    """Runs jobs one at a time in one thread; a job late for whatever reason runs once."""

    def __init__(self, clock: Clock, draw: Callable[[], float] = random.random) -> None:
        """Take the clock; ``draw`` gives random numbers from 0 to 1 for the jitter."""
        self._clock = clock
        self._draw = draw
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._offset_s = clock.wall_s() - clock.monotonic_s()
        self._stopped = False
        self._scheduler = BackgroundScheduler(
            timezone=timezone.utc,
            executors={"default": ThreadPoolExecutor(1)},
            job_defaults={"coalesce": True, "max_instances": _NO_LIMIT, "misfire_grace_time": None},
        )

    def start(self) -> None:
        """Start the threads."""
        logging.getLogger("apscheduler").setLevel(logging.WARNING)
        self._scheduler.start()

    def stop(self) -> None:
        """Start no further job; a running one is not waited for."""
        with self._lock:
            self._stopped = True
            self._entries.clear()
        if self._scheduler.running:
            self._scheduler.remove_all_jobs()  # waits for a round of starts: one cut short would raise in its thread
            self._scheduler.shutdown(wait=False)

    def every(
        self, name: str, function: Callable[[], None], *, delay_s: float, interval_s: float, jitter: float
    ) -> None:
        """Run ``function`` in ``delay_s`` seconds, then each ``interval_s``; replaces a job of that name."""
        due_s = self._clock.monotonic_s() + delay_s
        self._put(name, _Entry(function, due_s, interval_s, jitter))

    def once(self, name: str, function: Callable[[], None], *, delay_s: float) -> None:
        """Run ``function`` once in ``delay_s`` seconds; replaces a job of that name."""
        self._put(name, _Entry(function, self._clock.monotonic_s() + delay_s))

    def names(self) -> frozenset[str]:
        """Return the names of the jobs that will run, the running one included."""
        with self._lock:
            return frozenset(self._entries)

    def cancel(self, name: str) -> None:
        """Forget a job; a running one goes on to its end."""
        with self._lock:
            self._entries.pop(name, None)
            self._disarm(name)

    def next_due_s(self) -> float | None:
        """Return when the next job is due, on the monotonic clock; None where there is none."""
        with self._lock:
            return min((entry.due_s for entry in self._entries.values()), default=None)

    def check_clock(self) -> None:
        """Arm every waiting job anew if the wall clock was set; to be called about once a second."""
        offset_s = self._clock.wall_s() - self._clock.monotonic_s()
        step_s = offset_s - self._offset_s
        if abs(step_s) <= CLOCK_STEP_S:
            return
        with self._lock:
            self._offset_s = offset_s
            for name in self._entries:
                if self._scheduler.get_job(name) is not None:
                    self._arm(name)
        _log.info("probe_schedule_rearmed", step_s=round(step_s, 3))

    def _put(self, name: str, entry: _Entry) -> None:
        with self._lock:
            if not self._stopped:
                self._entries[name] = entry
                self._arm(name)

    def _arm(self, name: str) -> None:
        """Give APScheduler the date at which a job is due by the clocks of now; the lock is held."""
        wall_s = self._clock.wall_s() + self._entries[name].due_s - self._clock.monotonic_s()
        date = datetime.fromtimestamp(wall_s, timezone.utc)
        self._scheduler.add_job(
            self._fire, DateTrigger(date, timezone.utc), args=(name,), id=name, replace_existing=True
        )

    def _disarm(self, name: str) -> None:
        try:
            self._scheduler.remove_job(name)
        except JobLookupError:
            return

    def _fire(self, name: str) -> None:
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                return
            if self._clock.monotonic_s() < entry.due_s - _EARLY_S:  # the wall clock was set forward
                self._arm(name)
                return
        try:
            entry.function()
        except Exception:  # noqa: BLE001 - a fault in one run must not end the schedule
            _log.exception("probe_run_failed", job=name)
        self._after(name, entry)

    def _after(self, name: str, entry: _Entry) -> None:
        """Arm a job that has run for its next time, unless it was replaced or cancelled meanwhile."""
        with self._lock:
            if self._entries.get(name) is not entry:
                return
            if not entry.interval_s:
                del self._entries[name]
                return
            now_s = self._clock.monotonic_s()
            due_s = next_due_s(entry.due_s, now_s, entry.interval_s, entry.jitter, self._draw())
            self._entries[name] = msgspec.structs.replace(entry, due_s=due_s)
            self._arm(name)
