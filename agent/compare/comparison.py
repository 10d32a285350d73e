"""Results held against each other: everything that ``heatsoak compare`` says, before it takes a form."""

from collections.abc import Iterator, Sequence
from typing import Final

from agent.bench.analysis import scaling
from agent.bench.marks import marks
from agent.bench.model import BenchResult
from agent.bench.points import points
from agent.compare.cautions import cautions
from agent.compare.headlines import headlines
from agent.compare.model import Compared, Comparison, Difference, Figure, Headlines, Ranking, Spread
from agent.compare.prices import PriceList, plain_name
from agent.compare.published import Table, not_beside, standings
from agent.compare.ranking import cost_unit, notes, rankings, unranked
from agent.compare.subjects import Subject, labels, subjects

Named = tuple[str, BenchResult]
"""A result under its label."""
LARGE_PERCENT: Final = 1.0
"""Two results of the same card should agree within this."""


def compare(
    results: Sequence[BenchResult],
    prices: PriceList | None = None,
    against: Table | None = None,
    files: Sequence[str] = (),
) -> Comparison:
    """Return the comparison of any number of results, with prices and beside published figures where given.

    ``files`` are the names of the results' files, which tell those of one label apart.
    """
    compared = subjects(results, files)
    named = list(zip(labels(results, files), results, strict=True))
    ranked = tuple(rankings(compared, prices))
    return Comparison(
        results=tuple(label for label, _ in named),
        cards=tuple(_compared(one, prices) for one in compared),
        cautions=tuple(cautions(compared)),
        rankings=ranked,
        notes=(
            *notes(compared),
            *unranked(compared, prices),
            *_price_notes(compared, prices, ranked),
            *(not_beside(compared, against) if against else ()),
        ),
        headlines=headlines(results),
        scaling=tuple(_spread(named)),
        differences=tuple(
            difference
            for right, left in _same_hardware(named)
            for difference in _differences(left, right, headlines([left[1], right[1]]))
        ),
        standings=tuple(standings(compared, against)) if against else (),
        figures=tuple(_figures(named)),
        currency=prices.currency if prices else "",
    )


def same_card(left: BenchResult, right: BenchResult) -> bool:
    """Return whether two results come from the same cards, or on a CPU from the same kind of processor."""
    ours, theirs = left.machine, right.machine
    if ours.device != theirs.device:
        return False
    if ours.device == "gpu":
        return bool(ours.cards) and [card.id for card in ours.cards] == [card.id for card in theirs.cards]
    return bool(ours.cpu) and (ours.cpu, ours.cpus) == (theirs.cpu, theirs.cpus)


def _same_hardware(named: Sequence[Named]) -> Iterator[tuple[Named, Named]]:
    """Yield each result with the first one of the same hardware, so that many of one card stay readable."""
    for place, one in enumerate(named):
        first = next((other for other in named[:place] if same_card(other[1], one[1])), None)
        if first is not None:
            yield one, first


def _compared(one: Subject, prices: PriceList | None) -> Compared:
    machine = one.result.machine
    price = prices.price_of(*one.names) if prices else None
    return Compared(one.label, one.card, machine.device, machine.tensorflow, machine.driver, len(machine.cards), price)


def _price_notes(compared: Sequence[Subject], prices: PriceList | None, ranked: Sequence[Ranking]) -> Iterator[str]:
    if prices is None:
        return
    if prices.hours_in_use is None:
        yield "no cost per image: the price list gives neither years nor utilisation"
    elif any(one.unit == cost_unit(prices) for one in ranked):
        energy = prices.energy_price_per_kwh
        told = f"energy at {energy:g} {prices.currency}/kWh while it works" if energy else "no energy"
        yield f"costs rest on {prices.years:g} years at {prices.utilisation:.0%} use, the card's price and {told}"
    names = {plain_name(name) for one in compared for name in one.names}
    for card in prices.card:
        if card.images_per_second is None and plain_name(card.name) not in names:
            yield f"the price list's {card.name} is none of the results"


def _spread(named: Sequence[Named]) -> Iterator[Spread]:
    for label, result in named:
        for one in scaling(points(result)):
            many = one.many
            yield Spread(
                label, many.network, many.dtype, many.mode, many.batch, many.replicas,
                many.images_per_second, one.speed_up, one.efficiency,
            )  # fmt: skip


def _differences(left: Named, right: Named, found: Sequence[Headlines]) -> Iterator[Difference]:
    """Yield each figure that two results have alike; ``found`` are the headlines of these two."""
    for one in found:
        mine, theirs = one.values
        if not mine or theirs is None:
            continue
        percent = 100.0 * (theirs - mine) / mine
        yield Difference(
            left[0], right[0], one.name, one.unit, mine, theirs, percent,
            large=abs(percent) > LARGE_PERCENT, repeatable=one.repeatable,
        )  # fmt: skip


def _figures(named: Sequence[Named]) -> Iterator[Figure]:
    for label, result in named:
        for point in points(result):
            yield Figure(
                label=label,
                network=point.network,
                dtype=point.dtype,
                mode=point.mode,
                size=point.size,
                batch=point.batch,
                variant=point.variant,
                replicas=point.replicas,
                accumulate=point.accumulate,
                method_version=point.record.result.method_version,
                memory_limit_bytes=point.memory_limit_bytes,
                images_per_second=point.images_per_second,
                peak_bytes=None if point.peak_bytes is None else float(point.peak_bytes),
                watts=point.watts,
                joules_per_image=point.joules_per_image,
                marks=marks(point.record),
            )
