"""The detectors of ``agent.verdicts.track`` over arrays of cards, and the noise they are fed with.

``Cards`` does with numpy what ``step_level`` and ``step_drift`` do for one card;
tests/unit/benchmarks/test_sensitivity.py holds the two equal, measurement by measurement.
"""

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from agent.config.settings import DegradedSettings
from agent.verdicts.measurements import MOST_CORRECTION, ROBUST_SIGMA
from agent.verdicts.references import LEAST_RANGE_KELVIN, STEEPEST_PER_KELVIN
from agent.verdicts.rules.degraded import DOUBT_S
from agent.verdicts.track import CLEAR_SHARE

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEARNING_H = 25
"""Hourly runs that span 24 hours."""
NEVER = 10**6


@dataclass(frozen=True)
class Noise:
    """What makes a healthy card's figures differ; shares of its true figure."""

    cv: float = 0.0024
    """Standard deviation between fresh processes, as measured."""
    swing: float = 0.01
    """Amplitude of a daily swing."""
    swing_kelvin: float = 0.0
    """Amplitude of the temperature that goes with the swing; 0: the card's temperature does not show it."""
    temperature_noise_kelvin: float = 0.7
    outlier_rate: float = 0.01
    outlier: float = -0.06
    contamination_per_year: float = 12.0
    """Episodes a year in which every run is lowered."""
    contamination_h: tuple[int, int] = (1, 6)
    contamination_depth: float = 0.02
    peers: int = 0
    """Other cards in the node, which share swing and contamination; their median is taken out of the drift."""


class Source:
    """Draws measurements of ``count`` cards, hour after hour."""

    def __init__(self, noise: Noise, count: int, rng: np.random.Generator) -> None:
        self.noise = noise
        self.count = count
        self._rng = rng
        self._phase = rng.uniform(0.0, 2.0 * np.pi, count)
        self._contaminated_h = np.zeros(count, dtype=np.int64)

    def hour(self, hour: int) -> Floats:
        """Return what the node does to each card in this hour: swing and contamination."""
        started = self._rng.random(self.count) < self.noise.contamination_per_year / 8766.0
        low, high = self.noise.contamination_h
        fresh = self._rng.integers(low, high + 1, self.count)
        self._contaminated_h = np.where(started, fresh, np.maximum(self._contaminated_h - 1, 0))
        shared = self.noise.swing * np.sin(2.0 * np.pi * hour / 24.0 + self._phase)
        return shared - self.noise.contamination_depth * (self._contaminated_h > 0)

    def temperature(self, hour: int) -> Floats:
        """Return each card's temperature above its mean while it measures: hot where the swing is low."""
        wave = -self.noise.swing_kelvin * np.sin(2.0 * np.pi * hour / 24.0 + self._phase)
        return wave + self._rng.normal(0.0, self.noise.temperature_noise_kelvin, self.count)

    def measure(self, shared: Floats) -> Floats:
        """Return one fresh process's deviation for each entry of ``shared``."""
        noise = self._rng.normal(0.0, self.noise.cv, shared.shape)
        outliers = self._rng.random(shared.shape) < self.noise.outlier_rate
        return shared + noise + np.where(outliers, self.noise.outlier, 0.0)

    def peer_median(self, shared: Floats) -> Floats:
        """Return the median of the peers' deviations."""
        return np.median(np.stack([self.measure(shared) for _ in range(self.noise.peers)]), axis=0)


@dataclass(frozen=True)
class References:
    """What the learning phase made of each card, relative to its true figure."""

    median: Floats
    mad: Floats
    slope: Floats
    temperature: Floats
    lowest: Floats
    highest: Floats

    def corrected(self, deviation: Floats, temperature: Floats) -> Floats:
        """Return deviations without what temperature explains."""
        above = np.clip(temperature, self.lowest, self.highest) - self.temperature
        return deviation - np.clip(self.slope * above, -MOST_CORRECTION, MOST_CORRECTION)


def learn(source: Source) -> References:
    """Let each card make its reference in the first day."""
    hours = range(LEARNING_H)
    values = np.stack([1.0 + source.measure(source.hour(hour)) for hour in hours])
    temperatures = np.stack([source.temperature(hour) for hour in hours])
    median = np.median(values, axis=0)
    return References(
        median=median,
        mad=np.median(np.abs(values - median), axis=0),
        slope=_slopes(temperatures, values / median),
        temperature=np.median(temperatures, axis=0),
        lowest=temperatures.min(axis=0),
        highest=temperatures.max(axis=0),
    )


def _slopes(temperatures: Floats, values: Floats) -> Floats:
    pairs = [(a, b) for a, b in combinations(range(len(values)), 2)]
    first, second = [a for a, _ in pairs], [b for _, b in pairs]
    slopes = np.empty(values.shape[1])
    for start in range(0, values.shape[1], 500):
        part = slice(start, start + 500)
        run = temperatures[second, part] - temperatures[first, part]
        slopes[part] = np.median((values[second, part] - values[first, part]) / run, axis=0)
    wide = np.ptp(temperatures, axis=0) >= LEAST_RANGE_KELVIN
    return np.where(wide, np.clip(slopes, STEEPEST_PER_KELVIN, 0.0), 0.0)


class Cards:
    """The states of both detectors for each card."""

    def __init__(self, references: References, limits: DegradedSettings) -> None:
        count = len(references.median)
        self._limits = limits
        self.needed = np.maximum(limits.drop, limits.noise_times * ROBUST_SIGMA * references.mad / references.median)
        self.slow = np.zeros(count, dtype=np.int64)
        self.slow_runs = np.zeros(count, dtype=np.int64)
        self.good_runs = np.zeros(count, dtype=np.int64)
        self.degraded = np.zeros(count, dtype=np.bool_)
        self.score = np.zeros(count)
        self.drifting = np.zeros(count, dtype=np.bool_)

    def step_level(self, which: NDArray[np.int64], deviation: Floats, *, new_run: bool) -> None:
        """Give one measurement to each card in ``which``."""
        limits, needed = self._limits, self.needed[which]
        is_slow = deviation <= -needed
        slow = np.where(is_slow, self.slow[which] + 1, 0)
        slow_runs = np.where(is_slow, self.slow_runs[which] + (new_run | (self.slow[which] == 0)), 0)
        enough = (slow >= limits.confirm_measurements) & (slow_runs >= limits.confirm_runs)
        is_good = ~is_slow & (deviation > -needed * CLEAR_SHARE)
        good_runs = np.where(is_good, self.good_runs[which] + (new_run | (self.good_runs[which] == 0)), 0)
        before = self.degraded[which]
        after = np.where(is_slow, before | enough, before & (good_runs < limits.confirm_runs))
        repaired = which[before & ~after]
        self.score[repaired], self.drifting[repaired] = 0.0, False
        self.slow[which], self.slow_runs[which], self.good_runs[which] = slow, slow_runs, good_runs
        self.degraded[which] = after

    def step_drift(self, corrected: Floats) -> None:
        """Give the hour's first measurement to every card."""
        limits = self._limits
        step = np.minimum(limits.drift_clip, -corrected - limits.drift_slack)
        self.score = np.minimum(np.maximum(0.0, self.score + step), limits.drift_limit)
        self.drifting = (self.score > 0.0) & (self.drifting | (self.score >= limits.drift_limit))


class Simulation:
    """Cards under the default schedule: a run an hour, and on suspicion a pair after 5 and after 15 minutes."""

    def __init__(self, noise: Noise, limits: DegradedSettings, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.source = Source(noise, count, rng)
        self.references = learn(self.source)
        self.cards = Cards(self.references, limits)
        self.runs = np.zeros(count, dtype=np.int64)
        """Judged runs so far, those on suspicion included."""
        self._hour = LEARNING_H
        self._rounds = np.full((limits.doubts, count), -NEVER)
        """Hours of the last rounds of runs on suspicion, the newest first."""
        self._everyone = np.arange(count)

    def run_hour(self, slowdown: float = 0.0) -> tuple[Bools, Bools]:
        """Pass one hour with every card slower by ``slowdown``; return which level and which drift newly condemn."""
        cards, everyone = self.cards, self._everyone
        degraded, drifting = cards.degraded.copy(), cards.drifting.copy()
        shared = self.source.hour(self._hour)
        deviation = self._seen(shared, everyone, slowdown)
        cards.step_level(everyone, deviation, new_run=True)
        cards.step_drift(self._without_node(deviation, shared))
        self.runs += 1
        asked_enough = self._hour - self._rounds[-1] <= DOUBT_S / 3600.0
        suspects = everyone[(cards.slow > 0) & ~cards.degraded & ~asked_enough]
        self._rounds[1:, suspects] = self._rounds[:-1, suspects]
        self._rounds[0, suspects] = self._hour
        for _ in range(2):
            for new_run in (True, False):
                cards.step_level(suspects, self._seen(shared, suspects, slowdown), new_run=new_run)
            self.runs[suspects] += 1
        self._hour += 1
        return cards.degraded & ~degraded, cards.drifting & ~drifting

    def _seen(self, shared: Floats, which: NDArray[np.int64], slowdown: float) -> Floats:
        """Return measured deviations from the learnt references."""
        true = (1.0 - slowdown) * (1.0 + self.source.measure(shared[which]))
        return true / self.references.median[which] - 1.0

    def _without_node(self, deviation: Floats, shared: Floats) -> Floats:
        if self.source.noise.peers:
            return deviation - self.source.peer_median(shared)
        return self.references.corrected(deviation, self.source.temperature(self._hour))


@dataclass(frozen=True)
class Detection:
    """How soon cards slowed by the same share are flagged."""

    slowdown: float
    runs_to_flag: NDArray[np.int64]
    """Judged runs until the first verdict, those on suspicion included; a large number where there was none."""
    hours_to_flag: NDArray[np.int64]

    def within_runs(self, runs: int) -> float:
        """Return the share of cards flagged within so many judged runs."""
        return float(np.mean(self.runs_to_flag <= runs))

    def within_hours(self, hours: int) -> float:
        """Return the share of cards flagged within so many scheduled runs."""
        return float(np.mean(self.hours_to_flag <= hours))


def detect(
    noise: Noise, limits: DegradedSettings, slowdown: float, count: int, seed: int, hours: int = 24
) -> Detection:
    """Slow every card down at a random time of its day and see when it is flagged."""
    simulation = Simulation(replace(noise, contamination_per_year=0.0), limits, count, seed)
    for _ in range(24):
        simulation.run_hour()
    already = simulation.cards.degraded | simulation.cards.drifting
    simulation.runs[:] = 0
    runs, waited = np.full(count, NEVER), np.full(count, NEVER)
    for hour in range(1, hours + 1):
        simulation.run_hour(slowdown)
        flagged = (simulation.cards.degraded | simulation.cards.drifting) & (waited == NEVER)
        runs[flagged], waited[flagged] = simulation.runs[flagged], hour
    return Detection(slowdown, runs[~already], waited[~already])


def false_alarms(
    noise: Noise, limits: DegradedSettings, card_years: int, seed: int, batch: int = 4000
) -> tuple[int, int]:
    """Return how many verdicts healthy cards get in so many card-years: from the level, and from the drift."""
    level = drift = done = 0
    while done < card_years:
        count = min(batch, card_years - done)
        simulation = Simulation(noise, limits, count, seed + done)
        for _ in range(8766):
            by_level, by_drift = simulation.run_hour()
            level += int(by_level.sum())
            drift += int(by_drift.sum())
        done += count
    return level, drift
