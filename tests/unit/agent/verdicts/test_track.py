"""The two state machines, replayed over interrupted and noisy histories."""

import math
import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.config.settings import DegradedSettings
from agent.model.probe import ProbeRecord
from agent.verdicts.measurements import lines, measure
from agent.verdicts.track import Drift, Level, Track, follow, step_drift, step_level, threshold
from tests.support.histories import confirmed, hourly
from tests.support.records import HOUR_S, reference

LIMITS = DegradedSettings()


def track_of(records: Sequence[ProbeRecord]) -> Track:
    """Return where the card stands after ``records``."""
    return follow(measure(records, (reference(),)), LIMITS)


def levels(deviations: list[float], *, apart_s: float = HOUR_S) -> Level:
    """Return the level after one measurement every ``apart_s``."""
    level = Level()
    for number, deviation in enumerate(deviations):
        level = step_level(level, number * apart_s, deviation, LIMITS.drop, LIMITS)
    return level


def test_three_slow_runs_of_which_two_were_made_twice_condemn() -> None:
    """One scheduled run, a pair after 5 minutes, a pair after 15."""
    assert track_of(confirmed(hourly([0.0] * 10), -0.05)).level.degraded


@pytest.mark.parametrize("number", range(1, 5))
def test_four_slow_measurements_do_not(number: int) -> None:
    """Each one less leaves the card under suspicion."""
    level = levels([0.0, *[-0.05] * number])
    assert (level.degraded, level.suspected) == (False, True)


def test_without_pairs_five_runs_condemn() -> None:
    """A schedule that makes single runs needs more of them."""
    assert levels([-0.05] * 5).degraded


def test_five_measurements_of_one_run_do_not_condemn() -> None:
    """Runs within the same two minutes are one: they share what disturbed them."""
    assert not levels([-0.05] * 9, apart_s=60.0).degraded


def test_one_good_measurement_breaks_the_row() -> None:
    """What is slow now and then is not confirmed."""
    assert not levels([-0.05, -0.05, -0.05, -0.05, 0.0] * 10).degraded


def test_the_onset_is_that_of_the_row_and_stays_until_cleared() -> None:
    """The first slow measurement of the row dates it."""
    level = levels([0.0, -0.05, 0.0, *[-0.05] * 6])
    assert (level.degraded, level.onset_wall_s) == (True, 3 * HOUR_S)
    assert levels([0.0, -0.05, 0.0]).onset_wall_s is None


def test_three_good_runs_clear_and_a_half_recovery_does_not() -> None:
    """A card must come back to 70 per cent of the threshold to be cleared."""
    slow = [-0.05] * 6
    assert levels([*slow, 0.0, 0.0]).degraded
    assert not levels([*slow, 0.0, 0.0, 0.0]).degraded
    assert levels([*slow, *[-0.03] * 20]).degraded
    assert levels([*slow, 0.0, 0.0, -0.03, 0.0, 0.0]).degraded


def test_a_noisy_card_needs_more_than_a_quiet_one() -> None:
    """The threshold follows the reference's own scatter where that is large."""
    assert threshold(reference(mad=0.001 * 660e12), LIMITS) == LIMITS.drop
    assert threshold(reference(mad=0.01 * 660e12), LIMITS) == pytest.approx(3 * 1.4826 * 0.01)


def test_a_three_per_cent_slowdown_adds_up_in_seven_hours() -> None:
    """Seven runs at twice the slack or more."""
    assert not track_of(hourly([0.0] * 10 + [-0.0305] * 6)).drift.drifting
    track = track_of(hourly([0.0] * 10 + [-0.0305] * 7))
    assert track.drift.drifting
    assert track.drift.onset_wall_s == hourly([0.0] * 11)[-1].wall_s


def test_outliers_and_runs_close_together_add_little() -> None:
    """An outlier weighs as one slow run; runs on suspicion do not add to hours."""
    assert not track_of(hourly([-0.06, 0.0, 0.0] * 60)).drift.drifting
    drift = Drift()
    for number in range(100):
        drift = step_drift(drift, number * 60.0, -0.03, LIMITS)
    assert drift.score == pytest.approx(4 * LIMITS.drift_clip)


def test_drift_is_lifted_when_the_sum_is_back_at_zero() -> None:
    """A card back at its figure is cleared after as many runs as it took to condemn it."""
    slow = [0.0] * 5 + [-0.0305] * 50
    assert track_of(hourly([*slow, *[0.0] * 6])).drift.drifting
    assert not track_of(hourly([*slow, *[0.0] * 7])).drift.drifting


def test_a_card_that_the_level_clears_starts_its_drift_anew() -> None:
    """After a repair, three good runs are enough for both."""
    slow = confirmed(hourly([0.0] * 5), -0.08)
    slow += hourly([-0.08] * 20, start_s=slow[-1].wall_s + HOUR_S)
    assert track_of(slow).drift.drifting
    assert not track_of([*slow, *hourly([0.0] * 3, start_s=slow[-1].wall_s + HOUR_S)]).condemned


@given(st.randoms(use_true_random=False), st.lists(st.floats(-0.2, 0.2), min_size=1, max_size=80))
@settings(max_examples=40, deadline=None)
def test_the_order_in_which_history_is_read_back_does_not_matter(
    shuffler: random.Random, deviations: list[float]
) -> None:
    """A restart that reads the records in another order ends where the first life did."""
    records = hourly(deviations)
    shuffled = list(records)
    shuffler.shuffle(shuffled)
    (line,) = lines(shuffled).values()
    assert track_of(line) == track_of(records)


@given(st.sets(st.integers(0, 59)), st.integers(1, 30))
@settings(max_examples=40, deadline=None)
def test_gaps_in_a_slow_history_delay_the_verdict_and_never_clear_it(missing: set[int], onset: int) -> None:
    """Whatever runs were skipped or lost: five slow ones in a row condemn, fewer do not, and none acquits."""
    records = hourly([0.0] * onset + [-0.05] * (60 - onset))
    kept = [one for hour, one in enumerate(records) if hour not in missing]
    slow = sum(hour not in missing for hour in range(onset, 60))
    assert track_of(kept).level.degraded == (slow >= LIMITS.confirm_measurements)


@pytest.mark.parametrize("seed", range(10))
def test_noise_swing_and_outliers_alone_condemn_nobody(seed: int) -> None:
    """Three weeks of a healthy card: measured noise, a daily swing of 1 per cent, outliers of minus 6."""
    rng = random.Random(seed)
    deviations = [0.01 * math.sin(hour * math.tau / 24) - 0.06 * (rng.random() < 0.01) for hour in range(500)]
    assert not track_of(hourly(deviations, seed=seed)).condemned
