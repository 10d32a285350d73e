"""The two figures of a run, put together."""

from agent.verdicts.measurements import PAIR_S, Measurement, means
from tests.support.records import HOUR_S, record, reference

PRODUCT, STEP = reference(), reference(probe="resnet50")


def product(wall_s: float, deviation: float, corrected: float = 0.0) -> Measurement:
    """Return a measured matrix product."""
    return Measurement(record(wall_s), PRODUCT, deviation, corrected)


def step(wall_s: float, deviation: float, corrected: float = 0.0) -> Measurement:
    """Return a measured training step."""
    return Measurement(record(wall_s), STEP, deviation, corrected)


def test_the_mean_of_a_run_has_the_slowers_record_and_both_references() -> None:
    """Evidence and cause are those of the figure that is further off."""
    for first, second, slower in ((-0.02, -0.06, STEP), (-0.06, -0.02, PRODUCT)):
        (mean,) = means([product(0.0, first, -0.01)], [step(7.0, second, -0.03)])
        assert (round(mean.deviation, 9), round(mean.corrected, 9)) == (-0.04, -0.02)
        assert mean.reference is slower
        assert {mean.reference.probe, mean.partner.probe if mean.partner else ""} == {"matmul", "resnet50"}


def test_each_figure_counts_once_and_only_beside_its_own_runs() -> None:
    """A run of which one figure was not judged has no mean, least of all with another run's figure."""
    products = [product(0.0, -0.01), product(60.0, -0.02), product(HOUR_S, -0.04)]
    steps = [step(7.0, -0.01), step(37.0, -0.5), step(67.0, -0.02), step(2 * HOUR_S, -0.5)]
    assert [(mean.wall_s < 60.0, mean.deviation) for mean in means(products, steps)] == [(True, -0.01), (False, -0.02)]


def test_figures_far_apart_are_of_two_runs() -> None:
    """As after a restart of the agent in the middle."""
    assert means([product(0.0, -0.05)], [step(PAIR_S + 1.0, -0.05)]) == ()
    assert means([], [step(1.0, -0.05)]) == means([product(1.0, -0.05)], []) == ()
