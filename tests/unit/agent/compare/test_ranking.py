"""Rankings: the arithmetic, the order, and that only like is ranked with like."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.bench.model import BenchResult, Step
from agent.compare.model import Ranking
from agent.compare.prices import PricedCard, PriceList, load_prices
from agent.compare.ranking import Candidate, common_configuration, metrics, notes, rank, rankings, unranked
from agent.compare.subjects import subjects
from tests.support.results import bench_result, curve, facts, machine, plain_steps, training

EXAMPLE = Path(__file__).parents[4] / "docs" / "examples" / "prices.toml"
PRICES = PriceList(
    currency="EUR",
    energy_price_per_kwh=0.36,
    years=2.0,
    utilisation=0.5,
    card=(PricedCard(name="made up A", price=20_000.0), PricedCard(name="Other 7", price=5_000.0)),
)
speeds = st.floats(min_value=0.01, max_value=1e6)
candidates = st.builds(
    Candidate,
    label=st.text(min_size=1, max_size=5),
    configuration=st.just("any"),
    images_per_second=speeds,
    images_per_second_per_watt=st.none() | st.floats(min_value=1e-4, max_value=1e3),
    price=st.none() | st.floats(min_value=1.0, max_value=1e7),
)


def two(**changes: object) -> tuple[BenchResult, BenchResult]:
    """Return two made-up results; the second one is of another card, 1.5 times as fast."""
    other = machine(facts("00000002", name="NVIDIA Other 7"))
    right = bench_result(*plain_steps(1.5, "00000002"), label="made up B", on=other)
    return bench_result(), msgspec.structs.replace(right, **changes)


def ranked(results: tuple[BenchResult, ...], prices: PriceList | None = None) -> list[Ranking]:
    """Return the rankings of results."""
    return list(rankings(subjects(results), prices))


def test_the_worked_example_of_the_documentation() -> None:
    """Published prices and throughputs: per 10,000 the order is RTX 3090, V100, A100, by arithmetic."""
    by_metric = {one.metric: one for one in rankings((), load_prices(EXAMPLE))}

    per_price = by_metric["throughput per price"]
    assert [(row.label, round(row.value, 1)) for row in per_price.rows] == [
        ("RTX 3090", 1541.7),
        ("V100", 828.6),
        ("A100 PCIe", 775.0),
    ]
    assert per_price.unit == "images/s per 10,000 CNY"
    assert [row.label for row in by_metric["throughput"].rows] == ["A100 PCIe", "V100", "RTX 3090"]
    assert {one.basis for one in by_metric.values()} == {"quoted"}


def test_cost_per_million_images_is_card_and_energy() -> None:
    """100 images/s for a year of work from 31,557.6: 10 a million; 10 J an image at 0.36 a kWh: 1 a million."""
    one = Candidate("x", "any", 100.0, images_per_second_per_watt=0.1, price=31_557.6)
    cost = metrics(PRICES)[-1]

    assert cost.unit == "EUR per million images"
    assert cost.value(one) == pytest.approx(10.0 + 1.0)
    assert cost.value(msgspec.structs.replace(one, images_per_second_per_watt=None)) is None
    assert cost.value(msgspec.structs.replace(one, price=None)) is None


def test_without_an_energy_price_the_card_alone_counts_and_the_name_says_so() -> None:
    """What is left out of a cost is not left unsaid."""
    cost = metrics(msgspec.structs.replace(PRICES, energy_price_per_kwh=None))[-1]

    assert cost.name == "cost of the card alone"
    assert cost.value(Candidate("x", "any", 100.0, price=31_557.6)) == pytest.approx(10.0)


def test_without_years_there_is_no_cost() -> None:
    """No life is made up for a card."""
    names = [one.name for one in metrics(msgspec.structs.replace(PRICES, years=None, utilisation=None))]
    assert names == ["throughput", "throughput per watt", "throughput per price"]


@settings(max_examples=60, deadline=None)
@given(st.lists(candidates, max_size=8))
def test_a_ranking_is_a_permutation_in_the_order_of_its_metric(given_candidates: list[Candidate]) -> None:
    """Nobody is lost, doubled or out of order; who has no value is named."""
    for metric in metrics(PRICES):
        ranking = rank(given_candidates, metric, "common", "any")
        valued = [one for one in given_candidates if metric.value(one) is not None]
        if ranking is None:
            assert valued == []
            continue
        values = [row.value for row in ranking.rows]
        assert sorted(row.label for row in ranking.rows) == sorted(one.label for one in valued)
        assert values == sorted(values, reverse=metric.higher_is_better)
        assert [row.rank for row in ranking.rows] == [values.index(value) + 1 for value in values]
        assert len(ranking.left_out) + len(ranking.rows) == len(given_candidates)


def test_results_are_ranked_in_the_best_configuration_that_all_have() -> None:
    """The second one's larger batches are its own: they count in its own best only."""
    extra = Step("more", curve(4000.0, (256,), card="00000002", mode="xla"))
    left, right = two(steps=(*plain_steps(1.5, "00000002"), extra))

    found = [one for one in ranked((left, right)) if one.metric == "throughput" and one.subject.startswith("resnet50")]

    assert [(one.basis, [row.configuration for row in one.rows]) for one in found] == [
        ("common", ["resnet50 bf16 xla 224 px, batch 128"] * 2),
        ("own_best", ["resnet50 bf16 xla 224 px, batch 256", "resnet50 bf16 xla 224 px, batch 128"]),
    ]
    assert [row.label for row in found[0].rows] == ["made up B", "made up A"]
    assert found[0].rows[0].value == pytest.approx(1.5 * found[0].rows[1].value)


def test_a_common_configuration_that_is_everybodys_best_is_ranked_once() -> None:
    """The same table twice would say nothing more."""
    found = [one for one in ranked(two()) if one.metric == "throughput"]
    assert [(one.basis, one.is_own_best) for one in found] == [("common", True), ("common", True)]


def test_figures_of_different_method_versions_are_never_ranked_together() -> None:
    """Each stands alone, and a note says why."""
    newer = (Step("resnet50", curve(9000.0, card="00000002", method_version=2)),)
    left, right = two(steps=newer)

    found = [one for one in ranked((left, right)) if one.subject.startswith("resnet50")]

    assert {len(one.rows) for one in found} == {1}
    assert {one.basis for one in found} == {"own_best"}
    assert "resnet50: not ranked together, measured by method versions 1, 2" in notes(subjects((left, right)))


@pytest.mark.parametrize(
    "other",
    [
        curve(500.0, card="00000002", dtype="fp16"),
        curve(500.0, card="00000002", size=64),
        curve(500.0, (7, 9), card="00000002"),
        curve(500.0, card="00000002", variant="article"),
        tuple(training(500.0, card="00000002", batch=batch, replicas=2) for batch in (16, 64)),
        tuple(training(500.0, card="00000002", batch=batch, accumulate=4) for batch in (16, 64)),
    ],
    ids=["data type", "image size", "batch", "variant", "two cards", "accumulation"],
)
def test_unlike_is_not_ranked_with_like(other: tuple[object, ...]) -> None:
    """Whatever differs in how a step was made keeps it out of the common ranking."""
    left = bench_result(Step("resnet50", curve(1000.0)))
    right = two(steps=(Step("resnet50", other),))[1]  # type: ignore[arg-type]

    assert common_configuration(subjects((left, right)), "resnet50") is None
    assert [one.basis for one in ranked((left, right)) if one.basis == "common"] == []


def test_published_throughputs_stay_among_themselves() -> None:
    """A measured figure and a published one have no common place."""
    prices = msgspec.structs.replace(
        PRICES, card=(*PRICES.card, PricedCard(name="Paper", price=1.0, images_per_second=1e6))
    )
    for one in ranked(two(), prices):
        assert ("Paper" in {row.label for row in one.rows}) == (one.basis == "quoted")


def test_disturbed_measurements_are_marked() -> None:
    """A rank that rests on a throttled or contended figure says so."""
    slowed = curve(1000.0, (16,), throttle_share={"hw_thermal": 0.5}, contended=True)
    (ranking, *_) = ranked((bench_result(Step("resnet50", slowed)),))

    assert ranking.rows[0].marks == ("contended", "slowed by hw_thermal for 50%")


def test_a_metric_that_ranks_nobody_says_why() -> None:
    """A rank that was asked for does not vanish without a word."""
    left, right = two()
    nobody = msgspec.structs.replace(PRICES, card=(PricedCard(name="Third", price=1.0),))
    dark = bench_result(Step("one", curve(1000.0, watts=None)))

    assert list(unranked(subjects((left, right)), PRICES)) == []
    assert list(unranked(subjects((dark,)), None)) == ["no rank by throughput per watt: no result has a power reading"]
    assert list(unranked(subjects((left,)), nobody)) == [
        "no rank by throughput per price: no result has a price",
        "no rank by cost of card and energy: no result has a price",
    ]
    assert list(unranked((), PRICES)) == []


def test_price_and_power_of_different_results_make_no_cost() -> None:
    """Each has one of the two."""
    dark = bench_result(Step("one", curve(1000.0, watts=None)))
    lit = two()[1]
    priced = msgspec.structs.replace(PRICES, card=(PricedCard(name="made up A", price=1.0),))
    assert list(unranked(subjects((dark, lit)), priced)) == [
        "no rank by cost of card and energy: no result has both a price and a power reading"
    ]


def test_published_throughputs_without_watts_have_no_cost() -> None:
    """The price list could tell them."""
    prices = msgspec.structs.replace(PRICES, card=(PricedCard(name="Paper", price=1.0, images_per_second=1.0),))
    assert list(unranked((), prices)) == [
        "no rank of published throughputs by cost of card and energy: the price list gives no watts beside them"
    ]


def test_who_lacks_a_price_is_left_out_by_name() -> None:
    """The table of prices does not silently shrink the field."""
    prices = msgspec.structs.replace(PRICES, card=PRICES.card[:1])
    found = next(one for one in ranked(two(), prices) if one.metric == "throughput per price")

    assert [row.label for row in found.rows] == ["made up A"]
    assert found.left_out == ("made up B: no price is given",)
