"""The whole comparison: same cards, differences, scaling, prices, published figures."""

import msgspec
import pytest

from agent.bench.model import Step
from agent.compare.comparison import compare, same_card
from agent.compare.prices import PricedCard, PriceList
from agent.compare.published import published
from tests.support.results import bench_result, curve, facts, machine, plain_steps, product, training


def test_two_results_of_a_card_differ_by_per_cent_figure_by_figure() -> None:
    """Half a per cent is noise, two are told; energy falls as throughput rises."""
    left = bench_result(Step("matmul", (product(600e12),)), Step("resnet50", curve(1000.0, (128,))))
    right = bench_result(Step("matmul", (product(603e12),)), Step("resnet50", curve(1020.0, (128,))), label="again")

    compared = compare([left, right])

    found = {one.name: one for one in compared.differences}
    assert found["matmul bf16"].percent == pytest.approx(0.5)
    assert not found["matmul bf16"].large
    assert found["matmul bf16"].repeatable
    assert found["resnet50 bf16 graph, batch 128"].percent == pytest.approx(2.0)
    assert found["resnet50 bf16 graph, batch 128"].large
    assert found["resnet50 bf16 graph, batch 128, energy"].percent == pytest.approx(-100 * (1 - 1 / 1.02))
    assert {(one.left, one.right) for one in compared.differences} == {("made up A", "again")}


def test_many_results_of_a_card_are_held_against_the_first() -> None:
    """One table each, not one for each pair."""
    results = [bench_result(label=label) for label in "abcd"]
    assert {(one.left, one.right) for one in compare(results).differences} == {("a", "b"), ("a", "c"), ("a", "d")}


def test_results_of_different_cards_have_no_difference_table() -> None:
    """Two cards are ranked, not held to one per cent."""
    other = bench_result(*plain_steps(card="00000002"), on=machine(facts("00000002")))
    assert compare([bench_result(), other]).differences == ()


@pytest.mark.parametrize(
    ("change", "same"),
    [({}, True), ({"cpus": 8}, False), ({"cpu": "Another"}, False), ({"cpu": ""}, False), ({"device": "gpu"}, False)],
)
def test_cpus_are_the_same_by_model_and_number(change: dict[str, object], same: bool) -> None:
    """A CPU has no identifier."""
    one = bench_result(Step("none", ()), on=machine(device="cpu", cards=()))
    other = msgspec.structs.replace(one, machine=msgspec.structs.replace(one.machine, **change))
    assert same_card(one, other) is same


def test_scaling_is_set_out_with_its_efficiency() -> None:
    """Two cards that give 1.9 times as much have an efficiency of 0.95."""
    steps = (Step("one", (training(1000.0, batch=64),)), Step("two", (training(1900.0, batch=64, replicas=2),)))
    (spread,) = compare([bench_result(*steps)]).scaling

    assert (spread.replicas, spread.batch) == (2, 64)
    assert [spread.speed_up, spread.efficiency] == pytest.approx([1.9, 0.95])


def test_headlines_stand_beside_each_other() -> None:
    """What one result lacks is None there, never 0."""
    left = bench_result(Step("matmul", (product(600e12),)))
    right = bench_result(Step("matmul", (product(30e12, dtype="fp32"),)), label="made up B")

    assert [(one.name, one.values) for one in compare([left, right]).headlines] == [
        ("matmul bf16", (600e12, None)),
        ("matmul fp32", (None, 30e12)),
    ]


def test_a_price_that_fits_no_result_is_noted() -> None:
    """A misspelt name in a price list does not go unnoticed; published rows need no result."""
    cards = (
        PricedCard(name="Made-Up 9000", price=1.0),
        PricedCard(name="Mispelt", price=1.0),
        PricedCard(name="Paper", price=1.0, images_per_second=5.0),
    )
    compared = compare([bench_result()], PriceList(currency="EUR", card=cards))

    assert "the price list's Mispelt is none of the results" in compared.notes
    assert not any("Paper" in note or "9000" in note for note in compared.notes)
    assert [card.price for card in compared.cards] == [1.0]


def test_a_card_stands_beside_what_was_published_and_in_no_rank_with_it() -> None:
    """Like precisions are set side by side; the ratio is of the published range; the same model is told."""
    steps = (Step("matmul", (product(659.4e12),)), Step("resnet50", curve(2000.0, (64,), dtype="fp16")))
    h200 = bench_result(*steps, label="mine", on=machine(facts(name="NVIDIA H200")))

    compared = compare([h200], against=published())

    products = [one for one in compared.standings if one.quantity == "matmul"]
    assert {one.precision for one in products} == {"bf16"}
    sheet = next(one for one in products if one.card == "H200 SXM")
    assert sheet.times == pytest.approx((659.4 / 989, 659.4 / 989))
    assert {one.card for one in products if one.same_model} == {"H200 SXM", "H200 141 GB"}
    assert {one.precision for one in compared.standings if one.quantity == "resnet50"} == {"fp16"}
    assert {one.unit for one in compared.standings} == {"flop/s", "images/s"}
    assert {row.label for ranking in compared.rankings for row in ranking.rows} == {"mine"}


def test_a_cpu_is_set_beside_no_published_card() -> None:
    """Rows of 0.00 tell nothing; that there are none is said."""
    steps = Step("matmul", (product(6e10, card="cpu"),)), Step("resnet50", curve(3.0, card="cpu"))
    compared = compare([bench_result(*steps, on=machine(device="cpu", cards=()))], against=published())

    assert compared.standings == ()
    assert compared.notes[-1] == "published figures are of cards; not set beside them: made up A"


def test_published_figures_far_above_a_measured_one_are_left_out() -> None:
    """A small card beside a data centre's: one sentence, no row."""
    compared = compare([bench_result(Step("matmul", (product(65e12),)))], against=published())

    assert 0.05 <= min(one.times[0] for one in compared.standings) < 0.1
    assert compared.notes[-1] == "published figures more than 20 times the measured one are left out: made up A"
    assert "left out" not in " ".join(compare([bench_result()], against=published()).notes)


def test_a_card_without_any_like_figure_is_told() -> None:
    """--against published does not answer with silence."""
    compared = compare([bench_result(Step("matmul", (product(1e12, dtype="int8"),)))], against=published())
    assert "made up A: nothing measured is like a published figure" in compared.notes


def test_costs_are_explained_only_where_they_are_ranked() -> None:
    """Without a power reading there is no cost with energy, and no note that claims one."""
    prices = PriceList(
        currency="EUR", energy_price_per_kwh=0.3, years=4.0, utilisation=0.5,
        card=(PricedCard(name="Made-Up 9000", price=100.0),),
    )  # fmt: skip
    unread = compare([bench_result(Step("one", curve(1000.0, watts=None)))], prices)
    read = compare([bench_result(Step("one", curve(1000.0)))], prices)

    assert not any(note.startswith("costs rest on") for note in unread.notes)
    assert "no rank by cost of card and energy: no result has a power reading" in unread.notes
    assert any(note.startswith("costs rest on 4 years") for note in read.notes)
    assert not any(note.startswith("no rank") for note in read.notes)


def test_small_images_are_not_set_beside_published_ones() -> None:
    """Published training figures are of 224 px."""
    small = bench_result(Step("resnet50", curve(2000.0, (64,), dtype="fp16", size=64)))
    assert compare([small], against=published()).standings == ()
