"""Training time: the arithmetic, its range, and where throughput and share come from."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.bench.model import BenchResult, Step
from agent.compare.estimate import (
    LEAST_REST,
    REST,
    USUAL,
    Share,
    Throughput,
    estimate,
    of_cards,
    share_of,
    throughput_of,
    time_text,
)
from agent.errors import ConfigError
from agent.model.probe import ProbeRecord
from tests.support.results import bench_result, curve, pipeline, training

ONE = Throughput(1000.0, 1, "as given")


def test_time_is_samples_times_epochs_over_what_is_kept() -> None:
    """1,000,000 images ten times at 700 images/s kept; 0.8 and 0.6 make the range."""
    made = estimate(1_000_000, 10, ONE)

    assert made.time_s == pytest.approx(1e7 / 700)
    assert [made.shortest_s, made.longest_s] == pytest.approx([1e7 / 800, 1e7 / 600])
    assert made.share == USUAL
    assert (made.cost, made.cautions) == (None, ())


def test_cost_is_hours_times_cards_times_price() -> None:
    """Two cards for ten hours at 3 an hour are 60."""
    made = estimate(36_000_000, 1, Throughput(1000.0, 2, ""), Share(1.0, 0.5, 1.0, "given", ""), price_per_hour=3.0)
    assert [made.cost, made.cheapest, made.dearest] == pytest.approx([60.0, 60.0, 120.0])


def test_several_cards_need_to_know_how_well_they_work_together() -> None:
    """Nothing is made up for them."""
    assert of_cards(1000.0, 4, 0.9, "").images_per_second == pytest.approx(3600.0)
    assert of_cards(1000.0, 1, None, "").images_per_second == 1000.0
    with pytest.raises(ConfigError, match="--cards 4 needs --efficiency"):
        of_cards(1000.0, 4, None, "")


def found(
    result: BenchResult,
    *,
    dtype: str = "",
    batch: int = 0,
    size: int = 0,
    cards: int = 1,
    efficiency: float | None = None,
) -> Throughput:
    """Return the throughput of ResNet-50 in a result."""
    return throughput_of(
        result, network="resnet50", dtype=dtype, batch=batch, size=size, cards=cards, efficiency=efficiency
    )


def test_a_results_fastest_fitting_step_counts() -> None:
    """Data type and batch narrow the choice; what was used is told."""
    result = bench_result()

    assert found(result).images_per_second == pytest.approx(2500.0 * 128 / 144)
    assert found(result, dtype="fp32", batch=16).images_per_second == pytest.approx(625.0 * 16 / 32)
    assert found(result, batch=16).detail == "resnet50 bf16 xla, 224 px, batch 16, measured"


def test_small_images_are_no_estimate_for_large_ones() -> None:
    """The CIFAR shape is many times as fast: it counts only where it is asked for, or nothing larger is there."""
    small = training(9000.0, size=32)
    both = bench_result(Step("cifar", (small,)), Step("one", curve(1000.0, (64,))))

    assert found(both).images_per_second == pytest.approx(800.0)
    assert found(both, size=32).images_per_second == 9000.0
    assert found(bench_result(Step("cifar", (small, training(5000.0, size=64))))).images_per_second == 5000.0
    with pytest.raises(ConfigError, match="resnet50 96 px was not measured; measured were bf16 32 px batch 64"):
        found(both, size=96)


def test_what_was_not_measured_is_told_with_what_was() -> None:
    """The reader sees what to ask for."""
    with pytest.raises(
        ConfigError, match="resnet50 fp16 224 px batch 5 was not measured; measured were bf16 224 px batch"
    ):
        found(bench_result(), dtype="fp16", batch=5)
    with pytest.raises(ConfigError, match="no training steps"):
        found(bench_result(Step("none", ())))


def test_several_cards_count_as_they_were_measured_together() -> None:
    """A measured spread comes first, then its efficiency on another step, then what was given."""
    steps = (
        Step("one", curve(1000.0, (64,))),
        Step("two", (training(1520.0, batch=64, replicas=2),)),
        Step("fp32", curve(200.0, (64,), dtype="fp32")),
    )
    result = bench_result(*steps)

    assert found(result, cards=2).images_per_second == 1520.0
    assert found(result, cards=2, dtype="fp32").images_per_second == pytest.approx(160.0 * 2 * 0.95)
    assert found(result, cards=2, efficiency=0.5).images_per_second == pytest.approx(800.0)
    with pytest.raises(ConfigError, match="--efficiency"):
        found(result, cards=4)


def measured_share(*records: ProbeRecord) -> Share:
    """Return the share that measurements of the input pipeline give."""
    share = share_of(bench_result(Step("pipeline", records)))
    assert share is not None
    return share


def test_the_measured_share_is_of_the_input_and_the_rest_is_assumed() -> None:
    """0.9 kept of the input, times 0.9; from the untuned pipeline times 0.8 to the input alone; all of it is told."""
    share = measured_share(pipeline(900.0, 1000.0), pipeline(300.0, 1000.0, tuned=False))

    assert [share.value, share.low, share.high] == pytest.approx([0.9 * REST, 0.3 * LEAST_REST, 0.9])
    assert share.origin == "measured"
    assert share.detail.startswith("input alone kept tuned 0.90, untuned 0.30, measured at resnet50 bf16 graph, 224 px")
    assert "for evaluation and checkpoints, which is assumed" in share.detail
    assert share.doubts == ()


@given(st.floats(1e-3, 1e4), st.none() | st.floats(1e-3, 1e4), st.floats(1e-3, 1e4))
@settings(max_examples=60, deadline=None)
def test_a_measured_share_always_has_a_range_the_right_way_round(
    tuned: float, untuned: float | None, alone: float
) -> None:
    """Whatever noise made of the two pipelines, the estimate lies within its range, and no card beats itself."""
    further = () if untuned is None else (pipeline(untuned, alone, tuned=False),)
    share = measured_share(pipeline(tuned, alone), *further)

    assert 0 < share.low < share.value < share.high <= 1


def test_an_untuned_pipeline_that_came_out_faster_is_told_as_noise() -> None:
    """Tuning makes nothing slower."""
    share = measured_share(pipeline(600.0, 1000.0), pipeline(900.0, 1000.0, tuned=False))
    assert "differ by less than they scatter" in " ".join(estimate(1, 1, ONE, share).cautions)
    assert share_of(bench_result()) is None


def test_a_host_that_cannot_feed_that_much_is_a_caution() -> None:
    """Four fast cards do not wait for a share, but for the host."""
    share = measured_share(pipeline(900.0, 1000.0))
    (caution,) = estimate(1, 1, Throughput(4000.0, 4, ""), share).cautions
    assert "the host alone fed 1,800" in caution
    assert estimate(1, 1, ONE, share).cautions == ()


@pytest.mark.parametrize(
    ("record", "is_like"),
    [
        (training(1000.0, batch=64), True),
        (training(1000.0, batch=128), True),
        (training(1000.0, batch=256), False),
        (training(1000.0, batch=64, mode="xla"), False),
        (training(1000.0, batch=64, dtype="fp16"), False),
    ],
)
def test_a_share_of_another_step_says_so(record: ProbeRecord, is_like: bool) -> None:
    """A step three times as fast waits three times as often."""
    throughput = found(bench_result(Step("one", (record,))))
    cautions = estimate(1, 1, throughput, measured_share(pipeline(900.0, 1000.0))).cautions
    told = "the share was measured at resnet50 bf16 graph, 224 px, batch 64, another step"
    assert [caution.startswith(told) for caution in cautions] == ([] if is_like else [True])


def test_a_disturbed_throughput_and_small_images_are_cautions() -> None:
    """An estimate is no better than what it rests on."""
    contended = found(bench_result(Step("one", (training(1000.0, contended=True),))))
    small = found(bench_result(Step("one", (training(1000.0, size=32),))))

    assert estimate(1, 1, contended).cautions[0].startswith("the throughput was contended: ")
    assert estimate(1, 1, small).cautions == ("the throughput is that of images of 32 px; larger ones take longer",)


def test_a_pipeline_of_no_known_shape_gives_a_share_all_the_same() -> None:
    """A file may come from anybody."""
    record = pipeline(900.0, 1000.0)
    odd = msgspec.structs.replace(record, result=msgspec.structs.replace(record.result, shape="many"))
    assert "measured at an unknown step" in measured_share(odd).detail


@pytest.mark.parametrize(
    ("time_s", "text"),
    [(5.2, "5 s"), (90.0, "2 min"), (3600.0, "1 h 0 min"), (5000.0, "1 h 23 min"), (200_000.0, "2 d 8 h")],
)
def test_times_read_in_two_units(time_s: float, text: str) -> None:
    """Days and hours, hours and minutes, minutes, seconds."""
    assert time_text(time_s) == text
