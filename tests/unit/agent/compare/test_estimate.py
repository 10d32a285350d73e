"""Training time: the arithmetic, its range, and where throughput and share come from."""

import pytest

from agent.bench.model import BenchResult, Step
from agent.compare.estimate import USUAL, Share, Throughput, estimate, of_cards, share_of, throughput_of, time_text
from agent.errors import ConfigError
from tests.support.results import bench_result, curve, pipeline, training

ONE = Throughput(1000.0, 1, "as given")


def test_time_is_samples_times_epochs_over_what_is_kept() -> None:
    """1,000,000 images ten times at 700 images/s kept; 0.8 and 0.6 make the range."""
    made = estimate(1_000_000, 10, ONE)

    assert made.time_s == pytest.approx(1e7 / 700)
    assert [made.shortest_s, made.longest_s] == pytest.approx([1e7 / 800, 1e7 / 600])
    assert made.share == USUAL
    assert (made.cost, made.caution) == (None, "")


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


def test_the_measured_share_is_fed_over_alone() -> None:
    """The tuned pipeline is the estimate, the untuned one the far end of the range."""
    records = (pipeline(900.0, 1000.0), pipeline(300.0, 1000.0, tuned=False))
    share = share_of(bench_result(Step("pipeline", records)))

    assert share is not None
    assert (share.value, share.low, share.high, share.origin) == (0.9, 0.3, 0.9, "measured")
    assert "bf16 64x224x224x3" in share.detail


def test_a_share_is_never_above_one_and_none_where_not_measured() -> None:
    """Noise makes no card faster than itself."""
    share = share_of(bench_result(Step("pipeline", (pipeline(1010.0, 1000.0),))))
    assert share is not None
    assert (share.value, share.low) == (1.0, 1.0)
    assert share_of(bench_result()) is None


def test_a_host_that_cannot_feed_that_much_is_a_caution() -> None:
    """Four fast cards do not wait for a share, but for the host."""
    share = share_of(bench_result(Step("pipeline", (pipeline(900.0, 1000.0),))))
    assert share is not None
    assert "the host alone fed 1,800" in estimate(1, 1, Throughput(4000.0, 4, ""), share).caution
    assert estimate(1, 1, ONE, share).caution == ""


@pytest.mark.parametrize(
    ("time_s", "text"),
    [(5.2, "5 s"), (90.0, "2 min"), (3600.0, "1 h 0 min"), (5000.0, "1 h 23 min"), (200_000.0, "2 d 8 h")],
)
def test_times_read_in_two_units(time_s: float, text: str) -> None:
    """Days and hours, hours and minutes, minutes, seconds."""
    assert time_text(time_s) == text
