"""Where a card stands after each judged measurement: two small state machines, stepped in order of time.

``Level`` sees a slowdown of a few per cent within minutes, ``Drift`` a smaller one within hours. Both are
replayed over the history that is kept, so that a restart of the agent changes nothing.
docs/verdicts-statistics.md says where the numbers come from.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from agent.config.settings import DegradedSettings
from agent.model.reference import Reference
from agent.verdicts.measurements import ROBUST_SIGMA, Measurement

RUN_GAP_S: Final = 120.0
"""Measurements closer than this belong to one run: a run made twice under suspicion."""
CLEAR_SHARE: Final = 0.7
"""A card is cleared below this share of what condemns it."""


class Level(msgspec.Struct, frozen=True):
    """How many of the last measurements in a row were slow, and whether that has condemned the card."""

    slow: int = 0
    slow_runs: int = 0
    good_runs: int = 0
    onset_wall_s: float | None = None
    """When the present row of slow measurements began; stays until the card is cleared."""
    last_wall_s: float | None = None
    degraded: bool = False

    @property
    def suspected(self) -> bool:
        """Return whether the last measurement was slow and nothing is decided."""
        return self.slow > 0 and not self.degraded


class Drift(msgspec.Struct, frozen=True):
    """A clipped cumulative sum of how far measurements lie below the reference, in shares of it."""

    score: float = 0.0
    onset_wall_s: float | None = None
    """When the sum left 0."""
    last_wall_s: float | None = None
    drifting: bool = False


class Track(msgspec.Struct, frozen=True):
    """Both, and the last measurement they saw."""

    level: Level = Level()
    drift: Drift = Drift()
    last: Measurement | None = None

    @property
    def condemned(self) -> bool:
        """Return whether either says that the card is slow."""
        return self.level.degraded or self.drift.drifting


def threshold(reference: Reference, limits: DegradedSettings, partner: Reference | None = None) -> float:
    """Return by which share a figure, or its mean with a ``partner``'s, must be below its reference to be slow."""
    if partner is None:
        return max(limits.drop, limits.noise_times * _noise(reference))
    return max(limits.drop_both, limits.noise_times * math.hypot(_noise(reference), _noise(partner)) / 2.0)


def _noise(reference: Reference) -> float:
    """Return the robust standard deviation of a reference's runs, as a share."""
    return ROBUST_SIGMA * reference.mad / reference.median


def step_level(level: Level, wall_s: float, deviation: float, needed: float, limits: DegradedSettings) -> Level:
    """Take one measurement: ``deviation`` from the reference, slow where it lies ``needed`` below or more."""
    new_run = level.last_wall_s is None or wall_s - level.last_wall_s > RUN_GAP_S
    if deviation <= -needed:
        slow = level.slow + 1
        slow_runs = level.slow_runs + (new_run or level.slow == 0)
        enough = slow >= limits.confirm_measurements and slow_runs >= limits.confirm_runs
        onset_wall_s = wall_s if level.onset_wall_s is None else level.onset_wall_s
        return Level(slow, slow_runs, 0, onset_wall_s, wall_s, level.degraded or enough)
    good = deviation > -needed * CLEAR_SHARE
    good_runs = level.good_runs + (new_run or level.good_runs == 0) if good else 0
    degraded = level.degraded and good_runs < limits.confirm_runs
    return Level(0, 0, good_runs, level.onset_wall_s if degraded else None, wall_s, degraded)


def step_drift(drift: Drift, wall_s: float, corrected: float, limits: DegradedSettings) -> Drift:
    """Take one measurement, unless it follows the last too closely to tell anything new about hours.

    Each adds how far it lies below the slack, at most the clip: one outlier weighs no more than a slow run.
    The verdict falls at the limit and is lifted when the sum is back at 0.
    """
    if drift.last_wall_s is not None and wall_s - drift.last_wall_s < limits.drift_spacing_s:
        return drift
    step = min(limits.drift_clip, -corrected - limits.drift_slack)
    score = min(max(0.0, drift.score + step), limits.drift_limit)
    if score == 0.0:
        return Drift(last_wall_s=wall_s)
    onset_wall_s = wall_s if drift.onset_wall_s is None else drift.onset_wall_s
    return Drift(score, onset_wall_s, wall_s, drift.drifting or score >= limits.drift_limit)


def follow(measurements: Iterable[Measurement], limits: DegradedSettings) -> Track:
    """Return where a card stands after ``measurements`` of one line, oldest first.

    A card that the level clears starts its drift anew: it was repaired.
    """
    track = Track()
    for one in measurements:
        needed = threshold(one.reference, limits, one.partner)
        level = step_level(track.level, one.wall_s, one.deviation, needed, limits)
        repaired = track.level.degraded and not level.degraded
        drift = step_drift(Drift() if repaired else track.drift, one.wall_s, one.corrected, limits)
        track = Track(level, drift, one)
    return track
