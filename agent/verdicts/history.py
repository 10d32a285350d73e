"""The recent past of each card, as bounded columns of numbers: what rules look back on."""

import math
from array import array
from collections.abc import Collection, Mapping
from typing import Final

from agent.verdicts.view import Window

RECENT_S: Final = 300.0
MINUTES_S: Final = 12 * 3600.0
SLACK: Final = 1.2
"""Rows are dropped from the front in batches, when this many times the bound is held."""


class Recorder:
    """Bounded rows of some keys, at most one row every ``step_s`` seconds."""

    def __init__(self, keys: Collection[str], step_s: float, span_s: float) -> None:
        self._keys = tuple(keys)
        self._step_s = step_s
        self._rows = max(10, math.ceil(span_s / step_s))
        self._times = array("d")
        self._columns: dict[str, array[float]] = {}
        self.window = Window(step_s, self._times, self._columns)
        """Always the current past: the columns are the recorder's own."""

    def add(self, monotonic_s: float, values: Mapping[str, float]) -> bool:
        """Append a row unless the last one is younger than a step; return whether a row was added."""
        times = self._times
        if times and monotonic_s - times[-1] < self._step_s * 0.9:
            return False
        for key in self._keys:
            column = self._columns.get(key)
            if column is not None:
                column.append(values.get(key, math.nan))
            elif key in values:
                self._columns[key] = array("d", [math.nan]) * len(times)
                self._columns[key].append(values[key])
        times.append(monotonic_s)
        if len(times) > self._rows * SLACK:
            self._trim(len(times) - self._rows)
        return True

    def _trim(self, surplus: int) -> None:
        """Drop the oldest rows."""
        for column in (self._times, *self._columns.values()):
            del column[:surplus]


class MinuteRecorder:
    """One row a minute from rows a second: means of gauges, latest values of counters."""

    def __init__(self, gauges: Collection[str], counters: Collection[str], span_s: float = MINUTES_S) -> None:
        self._recorder = Recorder((*gauges, *counters), 60.0, span_s)
        self._gauges = tuple(gauges)
        self._counters = tuple(counters)
        self._since: float | None = None
        self._sums: dict[str, tuple[float, int]] = {}
        self._latest: dict[str, float] = {}

    @property
    def window(self) -> Window:
        """The last hours."""
        return self._recorder.window

    def add(self, monotonic_s: float, values: Mapping[str, float]) -> bool:
        """Take a row into the current minute; return whether a minute was completed by it."""
        completed = self._since is not None and monotonic_s - self._since >= 60.0
        if completed:
            row = {key: total / count for key, (total, count) in self._sums.items()}
            self._recorder.add(monotonic_s, row | self._latest)
        if completed or self._since is None:
            self._since = monotonic_s
            self._sums, self._latest = {}, {}
        for key in self._gauges:
            if key in values:
                total, count = self._sums.get(key, (0.0, 0))
                self._sums[key] = (total + values[key], count + 1)
        for key in self._counters:
            if key in values:
                self._latest[key] = values[key]
        return completed


class CardHistory:
    """What the engine remembers of one card's readings."""

    def __init__(
        self, keys: Collection[str], gauges: Collection[str], counters: Collection[str], tick_s: float
    ) -> None:
        self._recent = Recorder(keys, max(1.0, tick_s), RECENT_S)
        self._minutes = MinuteRecorder(gauges, counters)
        self.recent = self._recent.window
        self.minutes = self._minutes.window

    def add(self, monotonic_s: float, values: Mapping[str, float]) -> bool:
        """Record one tick; return whether a minute was completed by it."""
        if not self._recent.add(monotonic_s, values):
            return False
        return self._minutes.add(monotonic_s, values)
