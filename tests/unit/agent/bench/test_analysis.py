"""What is read out of measurements: each figure against numbers worked out by hand."""

import pytest

from agent.bench import analysis
from agent.bench.analysis import Curve
from agent.bench.model import Machine
from agent.bench.points import points
from agent.model.probe import ProbeRecord
from tests.unit.agent.bench.results import bench_result, measured, training

GB = 10**9


def curve_of(*records: ProbeRecord) -> Curve:
    """Return the one curve of some measurements."""
    (curve,) = analysis.curves(points(bench_result({"step": records})))
    return curve


def test_knee_is_the_smallest_batch_with_95_percent_of_the_best() -> None:
    """949 of 1,000 are not enough, 950 are."""
    curve = curve_of(training(256, 1000.0), training(64, 949.0), training(128, 950.0), training(512, 990.0))
    assert [point.batch for point in curve.points] == [64, 128, 256, 512]
    assert (curve.best.batch, curve.largest.batch, analysis.knee(curve).batch) == (256, 512, 128)


def test_of_a_batch_measured_often_the_middle_counts() -> None:
    """The slower one of two."""
    assert curve_of(training(64, 900.0), training(64, 1000.0), training(64, 950.0)).best.images_per_second == 950.0
    assert curve_of(training(64, 900.0), training(64, 1000.0)).best.images_per_second == 900.0


def test_what_differs_in_more_than_the_batch_is_another_curve() -> None:
    """Several cards and summed gradients belong to none."""
    records = [
        training(64), training(64, dtype="tf32"), training(64, mode="xla"), training(64, size=384),
        training(64, variant="article"), training(64, replicas=2), training(64, accumulate=4),
    ]  # fmt: skip
    names = [str(curve.setting) for curve in analysis.curves(points(bench_result({"step": records})))]
    assert names == [
        "resnet50 bf16 graph 224 px", "resnet50 bf16 graph 224 px article", "resnet50 bf16 graph 384 px",
        "resnet50 bf16 xla 224 px", "resnet50 tf32 graph 224 px",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("memory_bytes", "batch", "word"),
    [
        (None, 256, "not read"),
        (20e9, 256, "the knee"),
        (10.1e9, 128, "below the knee at 256"),
        (1e9, 64, "no batch"),
    ],
)
def test_recommended_batch_leaves_a_tenth_of_memory_free(memory_bytes: float | None, batch: int, word: str) -> None:
    """The knee where it does, the largest below it that does, else the smallest measured."""
    curve = curve_of(
        training(64, 500.0, peak_bytes=4 * GB),
        training(128, 800.0, peak_bytes=6 * GB),
        training(256, 1000.0, peak_bytes=10 * GB),
        training(512, 1010.0, peak_bytes=18 * GB),
    )
    advice = analysis.recommended(curve, memory_bytes)
    assert (advice.point.batch, advice.knee.batch) == (batch, 256)
    assert word in advice.why


def test_memory_is_that_of_the_limit_or_the_card() -> None:
    """A CPU has none to speak of."""
    assert analysis.memory_of(bench_result({})) == 140e9
    assert analysis.memory_of(bench_result({}, memory_limit_bytes=16 << 30)) == 16 << 30
    assert analysis.memory_of(bench_result({}, Machine("cpu"))) is None


def test_throughput_for_memory_power_and_energy() -> None:
    """Per GB of the peak, per watt of all cards, joules for each image; None where nothing was read."""
    (point,) = points(bench_result({"step": [training(64, 4000.0, peak_bytes=8 * GB, watts=500.0, replicas=2)]}))
    assert analysis.images_per_second_per_gb(point) == 500.0
    assert analysis.images_per_second_per_watt(point) == 4.0
    assert point.joules_per_image == 0.25
    (bare,) = points(bench_result({"step": [training(64)]}))
    assert analysis.images_per_second_per_gb(bare) is None
    assert analysis.images_per_second_per_watt(bare) is None


def test_scaling_stands_beside_one_card_with_the_same_batch() -> None:
    """The figures of the two cards that were measured: 2,013 to 3,947 images a second."""
    records = [training(256, 2013.0), training(64, 1774.0), training(256, 3947.0, replicas=2), training(32, replicas=2)]
    (spread,) = analysis.scaling(points(bench_result({"step": records})))
    assert spread.speed_up == pytest.approx(1.9608, abs=1e-4)
    assert spread.efficiency == pytest.approx(0.9804, abs=1e-4)


def test_jitter_of_single_steps() -> None:
    """Median, deviation and the slow end; None without a series."""
    steps_s = [0.1] * 97 + [0.12, 0.2, 0.5]
    even, bare = points(bench_result({"step": [training(64, steps_s=steps_s), training(128)]}))
    found = analysis.jitter(even)
    assert found is not None
    assert (found.steps, found.median_s, found.mad_s, found.p99_over_median) == (100, 0.1, 0.0, 2.0)
    assert analysis.jitter(bare) is None
    (short,) = points(bench_result({"step": [training(64, steps_s=[0.1, 0.1, 0.4])]}))
    worst = analysis.jitter(short)
    assert worst is not None
    assert worst.p99_over_median == pytest.approx(4.0)


def test_first_step_is_told_in_steady_ones() -> None:
    """4 s against 0.25 s a step of 250 images at 1,000 a second."""
    (point,) = points(bench_result({"step": [training(250)]}))
    cold = analysis.cold_start(point)
    assert cold is not None
    assert (cold.first_step_s, cold.steady_step_s, cold.steps_lost) == (4.0, 0.25, 16.0)


def test_memory_savings_compare_like_with_like() -> None:
    """Growth with all reserved on the card, half precision with fp32 at the same shape only."""
    used = {"growth": 20e9, "reserve-all": 130e9}
    shape = "64x224x224x3"
    steps = {
        f"memory/{name}": [measured("memory", 7e9, "byte", shape=shape, figures={"device_used_bytes": size})]
        for name, size in used.items()
    }
    steps["memory/bf16"] = [
        measured("memory", 6e9, "byte", shape=shape, figures={"optimizer_added_bytes": 2e8, "held_bytes": 5e8})
    ]
    steps["memory/fp16"] = [measured("memory", 3e9, "byte", dtype="fp16", shape="32x224x224x3")]
    steps["memory/fp32"] = [measured("memory", 10e9, "byte", dtype="fp32", shape=shape)]
    result = bench_result(steps)
    assert [use.optimizer_added_bytes for use in analysis.memory_uses(result)][2] == 2e8
    found = {saving.name.split()[0]: saving.share for saving in analysis.savings(result)}
    assert found == {"growth": pytest.approx(0.846, abs=1e-3), "bf16": pytest.approx(0.4)}
