"""The simulation decides as the product does."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from agent.config.settings import DegradedSettings
from agent.model.probe import ProbeRecord
from agent.verdicts.measurements import Measurement, expected_by_heat, means, measure
from agent.verdicts.references import slope_per_kelvin, summary_of
from agent.verdicts.track import follow, threshold
from benchmarks.sensitivity_model import (
    LEARNING_H,
    Cards,
    Noise,
    References,
    Source,
    detect,
    false_alarms,
    learn,
    thresholds,
    with_both,
)
from tests.support.records import HOUR_S, record, reference

LIMITS = DegradedSettings()
COUNT = 40


def made_up(mad: float = 0.001) -> References:
    """Return references of many cards without noise of their own."""
    ones = np.ones(COUNT)
    return References(ones, mad * ones, 0 * ones, 0 * ones, 0 * ones, 0 * ones)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("mad", [0.001, 0.012])
def test_cards_in_an_array_stand_where_single_cards_stand(seed: int, mad: float) -> None:
    """After every hour of slow, good and borderline runs, with pairs on suspicion: both machines, every field."""
    rng = np.random.default_rng(seed)
    cards = Cards(thresholds([made_up(mad)] * 2, LIMITS)[0], LIMITS)
    plain = reference(median=1.0, mad=mad)
    histories: list[list[Measurement]] = [[] for _ in range(COUNT)]
    everyone = np.arange(COUNT)
    for hour in range(60):
        centre = 0.05 * np.sin(hour / 9.0 + everyone)
        for delay_s, new_run in ((0.0, True), (300.0, True), (330.0, False), (900.0, True), (930.0, False)):
            which = everyone if delay_s == 0.0 else everyone[(cards.slow > 0) & ~cards.degraded]
            deviation = centre[which] + rng.normal(0.0, 0.01, len(which))
            cards.step_level(which, deviation, new_run=new_run)
            if delay_s == 0.0:
                cards.step_drift(deviation)
            for card, value in zip(which, deviation, strict=True):
                one = Measurement(record(hour * HOUR_S + delay_s), plain, float(value), float(value))
                histories[card].append(one)
        tracks = [follow(history, LIMITS) for history in histories]
        assert cards.needed[0] == pytest.approx(threshold(plain, LIMITS))
        assert [track.level.degraded for track in tracks] == cards.degraded.tolist()
        assert [track.level.slow for track in tracks] == cards.slow.tolist()
        assert [track.level.slow_runs for track in tracks] == cards.slow_runs.tolist()
        assert [track.level.good_runs for track in tracks] == cards.good_runs.tolist()
        assert [track.drift.drifting for track in tracks] == cards.drifting.tolist()
        np.testing.assert_allclose([track.drift.score for track in tracks], cards.score, atol=1e-12)


def runs_of(values: Sequence[float], temperatures: Sequence[float]) -> list[ProbeRecord]:
    """Return hourly runs."""
    return [
        record(hour * HOUR_S, value, temperature_celsius=celsius)
        for hour, (value, celsius) in enumerate(zip(values, temperatures, strict=True))
    ]


def test_references_in_an_array_are_those_of_single_cards() -> None:
    """Median, scatter, slope over temperature and the correction that follows from it."""
    noise = Noise(swing_kelvin=4.0)
    source, twin = (Source(noise, COUNT, np.random.default_rng(5)) for _ in range(2))
    made = learn(source)[1]
    values = np.stack([1.0 + twin.measure(twin.hour(hour))[1] for hour in range(LEARNING_H)])
    temperatures = np.stack([twin.temperature(hour) for hour in range(LEARNING_H)])
    now = np.full(COUNT, 2.5)
    corrected = made.corrected(np.zeros(COUNT), now)
    for card in range(COUNT):
        runs = runs_of(values[:, card].tolist(), temperatures[:, card].tolist())
        single = summary_of(runs, 0.0)
        assert single.median == pytest.approx(made.median[card])
        assert single.mad == pytest.approx(made.mad[card])
        assert slope_per_kelvin(runs, single.median) == pytest.approx(made.slope[card])
        later = record(100 * HOUR_S, single.median, temperature_celsius=2.5)
        assert -expected_by_heat(later, single) == pytest.approx(corrected[card])
        (measured,) = measure([later], (single,))
        assert measured.corrected == pytest.approx(corrected[card])


@pytest.mark.parametrize("mad", [0.001, 0.03])
def test_the_mean_of_both_figures_is_the_products_own(mad: float) -> None:
    """Its deviation, its correction, and the threshold that it is held against."""
    first, second = reference(median=1.0, mad=mad), reference(median=2.0, mad=mad, probe="resnet50")
    ones = [Measurement(record(hour * HOUR_S), first, -0.02, -0.01) for hour in range(3)]
    others = [Measurement(record(hour * HOUR_S + 7.0), second, -0.06, -0.05) for hour in range(3)]
    found = means(ones, others)
    assert len(found) == 3
    for mean in found:
        deviations = with_both(np.array([[-0.02], [-0.06]]))
        assert (mean.deviation, mean.corrected) == pytest.approx((deviations[2, 0], -0.03))
        array = [made_up(mad), replace(made_up(mad), median=2.0 * np.ones(COUNT))]
        assert threshold(mean.reference, LIMITS, mean.partner) == pytest.approx(thresholds(array, LIMITS)[2][0])


def test_the_targets_hold_in_a_small_simulation() -> None:
    """5 per cent within 3 runs, 3 per cent within 12, no false alarm in a hundred card-years."""
    noise = Noise(swing_kelvin=4.0)  # and as noisy as the card was measured to be
    assert detect(noise, LIMITS, 0.05, 2000, 1, hours=4).within_runs(3) >= 0.95
    assert detect(noise, LIMITS, 0.03, 2000, 2).within_runs(12) >= 0.95
    assert false_alarms(noise, LIMITS, 20, 3) == (0, 0)
