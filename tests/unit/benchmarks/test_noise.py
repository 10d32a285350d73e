"""What explains scatter is told from what does not."""

import numpy as np
import pytest

from benchmarks.noise import autocorrelation, correlation, left_over, limits_of

RNG = np.random.default_rng(3)
CAUSE = RNG.normal(size=40)
REST = RNG.normal(scale=0.1, size=40)


def test_a_cause_is_found_and_taken_out() -> None:
    """What is left over is the rest's scatter."""
    seen, chance = correlation(CAUSE, CAUSE + REST, RNG)
    assert seen > 0.9
    assert chance < 0.001
    assert left_over(CAUSE + REST, CAUSE) == pytest.approx(REST.std(), rel=0.2)


def test_what_explains_nothing_leaves_more_than_was_there() -> None:
    """Each run is predicted from the others, so that a chance likeness costs."""
    _, chance = correlation(CAUSE, REST, RNG)
    assert chance > 0.01
    assert left_over(REST, CAUSE) > 0.95 * left_over(REST)


def test_a_slow_trend_resembles_itself_and_noise_does_not() -> None:
    """Within two standard errors."""
    assert autocorrelation(np.cumsum(CAUSE)) > 0.6
    assert abs(autocorrelation(CAUSE)) < 2 / np.sqrt(len(CAUSE))


def test_limits_are_those_of_the_chi_squared_distribution() -> None:
    """For 19 degrees of freedom 8.907 and 32.852 cut off 2.5 % each."""
    low, high = limits_of(1.0, 20)
    assert (low, high) == pytest.approx((np.sqrt(19 / 32.852), np.sqrt(19 / 8.907)), rel=0.005)
