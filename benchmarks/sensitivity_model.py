"""The detectors of ``agent.verdicts.track`` over arrays of cards, and the noise they are fed with.

A card has three lines: its two judged figures, and their mean. ``Cards`` does with numpy, on one line, what
``step_level`` and ``step_drift`` do for one card;
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


FIGURES = 2
"""Judged figures of a card, made in one run: matrix product and ResNet-50 step."""
BOTH_SLOWED = (1.0, 1.0)
ONE_SLOWED = (1.0, 0.0)


@dataclass(frozen=True)
class Noise:
    """What makes a healthy card's figures differ; shares of its true figure."""

    cv: tuple[float, float] = (0.0047, 0.0035)
    """Standard deviation of either figure between fresh processes, as measured."""
    correlation: float = 0.19
    """Between the two figures of a run, as measured."""
    swing: float = 0.01
    """Amplitude of a daily swing of both."""
    swing_kelvin: float = 0.0
    """Amplitude of the temperature that goes with the swing; 0: the card's temperature does not show it."""
    temperature_noise_kelvin: float = 0.7
    outlier_rate: float = 0.01
    outlier: float = -0.06
    """An outlier lowers both figures of a run."""
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
        """Return one fresh process's deviations for each entry of ``shared``: a row for each figure."""
        first, own = self._rng.standard_normal((FIGURES, *shared.shape))
        second = self.noise.correlation * first + np.sqrt(1.0 - self.noise.correlation**2) * own
        noise = np.stack([self.noise.cv[0] * first, self.noise.cv[1] * second])
        outliers = self._rng.random(shared.shape) < self.noise.outlier_rate
        deviations: Floats = shared + noise + np.where(outliers, self.noise.outlier, 0.0)
        return deviations

    def peer_median(self, shared: Floats) -> Floats:
        """Return the median of the peers' deviations, on each line."""
        return np.median(np.stack([with_both(self.measure(shared)) for _ in range(self.noise.peers)]), axis=0)


def with_both(figures: Floats) -> Floats:
    """Return the figures' rows and their mean as a last one."""
    return np.vstack([figures, figures.mean(axis=0)])


@dataclass(frozen=True)
class References:
    """What the learning phase made of one figure of each card, relative to its true value."""

    median: Floats
    mad: Floats
    slope: Floats
    temperature: Floats
    lowest: Floats
    highest: Floats

    @property
    def noise(self) -> Floats:
        """Return each reference's robust standard deviation, as a share of it."""
        return ROBUST_SIGMA * self.mad / self.median

    def corrected(self, deviation: Floats, temperature: Floats) -> Floats:
        """Return deviations without what temperature explains."""
        above = np.clip(temperature, self.lowest, self.highest) - self.temperature
        return deviation - np.clip(self.slope * above, -MOST_CORRECTION, MOST_CORRECTION)


def learn(source: Source) -> list[References]:
    """Let each card make the references of its figures in the first day."""
    hours = range(LEARNING_H)
    values = np.stack([1.0 + source.measure(source.hour(hour)) for hour in hours], axis=1)
    temperatures = np.stack([source.temperature(hour) for hour in hours])
    return [reference_of(of_figure, temperatures) for of_figure in values]


def reference_of(values: Floats, temperatures: Floats) -> References:
    """Return what a row of values for each hour makes."""
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


def thresholds(references: list[References], limits: DegradedSettings) -> list[Floats]:
    """Return by how much each card's run must lie below the reference to be slow, on each line."""
    noises = [one.noise for one in references]
    alone = [np.maximum(limits.drop, limits.noise_times * noise) for noise in noises]
    both = np.hypot(noises[0], noises[1]) / FIGURES
    return [*alone, np.maximum(limits.drop_both, limits.noise_times * both)]


class Cards:
    """The states of both detectors for each card, on one line."""

    def __init__(self, needed: Floats, limits: DegradedSettings) -> None:
        count = len(needed)
        self._limits = limits
        self.needed = needed
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
        self.lines = [Cards(needed, limits) for needed in thresholds(self.references, limits)]
        self.runs = np.zeros(count, dtype=np.int64)
        """Judged runs so far, those on suspicion included."""
        self._hour = LEARNING_H
        self._rounds = np.full((limits.doubts, count), -NEVER)
        """Hours of the last rounds of runs on suspicion, the newest first."""
        self._everyone = np.arange(count)

    @property
    def condemned(self) -> tuple[Bools, Bools]:
        """Return which cards the level of any line condemns, and which the drift of any."""
        return (
            np.logical_or.reduce([line.degraded for line in self.lines]),
            np.logical_or.reduce([line.drifting for line in self.lines]),
        )

    def run_hour(self, slowdown: float = 0.0, figures: tuple[float, float] = BOTH_SLOWED) -> tuple[Bools, Bools]:
        """Pass one hour with ``figures`` of every card slower by ``slowdown``.

        Return which cards level and drift newly condemn.
        """
        everyone, slowed = self._everyone, slowdown * np.array(figures)
        degraded, drifting = self.condemned
        shared = self.source.hour(self._hour)
        deviations = self._seen(shared, everyone, slowed)
        for line, deviation, corrected in zip(
            self.lines, with_both(deviations), self._without_node(deviations, shared), strict=True
        ):
            line.step_level(everyone, deviation, new_run=True)
            line.step_drift(corrected)
        self.runs += 1
        asked_enough = self._hour - self._rounds[-1] <= DOUBT_S / 3600.0
        suspected = np.logical_or.reduce([(line.slow > 0) & ~line.degraded for line in self.lines])
        suspects = everyone[suspected & ~asked_enough]
        self._rounds[1:, suspects] = self._rounds[:-1, suspects]
        self._rounds[0, suspects] = self._hour
        for _ in range(2):
            for new_run in (True, False):
                seen = with_both(self._seen(shared, suspects, slowed))
                for line, deviation in zip(self.lines, seen, strict=True):
                    line.step_level(suspects, deviation, new_run=new_run)
            self.runs[suspects] += 1
        self._hour += 1
        now_degraded, now_drifting = self.condemned
        return now_degraded & ~degraded, now_drifting & ~drifting

    def _seen(self, shared: Floats, which: NDArray[np.int64], slowed: Floats) -> Floats:
        """Return measured deviations of the figures from the learnt references."""
        true = (1.0 - slowed[:, None]) * (1.0 + self.source.measure(shared[which]))
        return true / np.stack([one.median[which] for one in self.references]) - 1.0

    def _without_node(self, deviations: Floats, shared: Floats) -> Floats:
        """Return the deviations of all lines without what the node does, or the temperature explains."""
        if self.source.noise.peers:
            return with_both(deviations) - self.source.peer_median(shared)
        temperature = self.source.temperature(self._hour)
        corrected = [
            one.corrected(deviation, temperature) for one, deviation in zip(self.references, deviations, strict=True)
        ]
        return with_both(np.stack(corrected))


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
    noise: Noise,
    limits: DegradedSettings,
    slowdown: float,
    count: int,
    seed: int,
    hours: int = 24,
    figures: tuple[float, float] = BOTH_SLOWED,
) -> Detection:
    """Slow ``figures`` of every card down at a random time of its day and see when it is flagged."""
    simulation = Simulation(replace(noise, contamination_per_year=0.0), limits, count, seed)
    for _ in range(24):
        simulation.run_hour()
    already = np.logical_or(*simulation.condemned)
    simulation.runs[:] = 0
    runs, waited = np.full(count, NEVER), np.full(count, NEVER)
    for hour in range(1, hours + 1):
        simulation.run_hour(slowdown, figures)
        flagged = np.logical_or(*simulation.condemned) & (waited == NEVER)
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
