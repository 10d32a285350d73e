"""Rankings: like with like, each by one named metric.

Two measured throughputs are ranked together where network, data type, mode, image size, batch, memory limit and
method version agree (``common``), or where each card shows the best it reached with one network, image size, memory
limit and method version (``own_best``). Published throughputs rank among themselves only (``quoted``).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from agent.bench.analysis import images_per_second_per_watt
from agent.bench.marks import marks
from agent.bench.points import Point
from agent.compare.model import Basis, Ranked, Ranking
from agent.compare.prices import PriceList
from agent.compare.subjects import Configuration, Subject

PRICE_STEP: Final = 10_000
"""The sum of money that throughput per price is told for."""
_JOULES_A_KWH: Final = 3.6e6
Need = Literal["price", "power"]
_LACKING: Final[Mapping[Need, str]] = {"price": "no price is given", "power": "power was not read"}
_NOBODY: Final[Mapping[Need, str]] = {
    "price": "no result has a price",
    "power": "no result has a power reading",
}


_NOT_BOTH: Final = "no result has both a price and a power reading"


class Candidate(msgspec.Struct, frozen=True):
    """One throughput that may take a place."""

    label: str
    configuration: str
    images_per_second: float
    images_per_second_per_watt: float | None = None
    price: float | None = None
    marks: tuple[str, ...] = ()

    def has(self, need: Need) -> bool:
        """Return whether it has what a metric needs."""
        return bool(self.price if need == "price" else self.images_per_second_per_watt)


class Metric(msgspec.Struct, frozen=True):
    """What candidates are ordered by; ``value`` returns None for a candidate without what it ``needs``."""

    name: str
    unit: str
    higher_is_better: bool
    needs: tuple[Need, ...]
    value: Callable[[Candidate], float | None]


def metrics(prices: PriceList | None) -> tuple[Metric, ...]:
    """Return the metrics that can be computed with a price list, or without one."""
    plain = (
        Metric("throughput", "images/s", True, (), lambda one: one.images_per_second),
        Metric("throughput per watt", "images/s/W", True, ("power",), lambda one: one.images_per_second_per_watt),
    )
    if prices is None:
        return plain
    per_price = Metric(
        "throughput per price",
        f"images/s per {PRICE_STEP:,} {prices.currency}",
        True,
        ("price",),
        images_per_price,
    )
    hours = prices.hours_in_use
    if hours is None:
        return (*plain, per_price)
    energy_price = prices.energy_price_per_kwh
    cost = Metric(
        "cost of card and energy" if energy_price else "cost of the card alone",
        cost_unit(prices),
        False,
        ("price", "power") if energy_price else ("price",),
        lambda one: cost_per_million(one, hours, energy_price),
    )
    return (*plain, per_price, cost)


def cost_unit(prices: PriceList) -> str:
    """Return the unit of what images cost."""
    return f"{prices.currency} per million images"


def images_per_price(one: Candidate) -> float | None:
    """Return images/s for each :data:`PRICE_STEP` of a card's price; None without a price."""
    return PRICE_STEP * one.images_per_second / one.price if one.price else None


def cost_per_million(one: Candidate, hours_in_use: float, energy_price_per_kwh: float | None) -> float | None:
    """Return what a million images cost: the card's price over all it computes in its hours of use, and energy.

    None without a price, or where energy counts and power is not known.
    """
    if not one.price:
        return None
    cost = 1e6 * one.price / (one.images_per_second * hours_in_use * 3600)
    if energy_price_per_kwh is None:
        return cost
    if not one.images_per_second_per_watt:
        return None
    return cost + 1e6 / one.images_per_second_per_watt / _JOULES_A_KWH * energy_price_per_kwh


def rank(candidates: Sequence[Candidate], metric: Metric, basis: Basis, subject: str) -> Ranking | None:
    """Return candidates in the order of a metric; None where none has a value."""
    valued = [(value, one) for one in candidates if (value := metric.value(one)) is not None]
    if not valued:
        return None
    valued.sort(key=lambda pair: (-pair[0] if metric.higher_is_better else pair[0], pair[1].label))
    values = [value for value, _ in valued]
    rows = tuple(
        Ranked(values.index(value) + 1, one.label, one.configuration, value, one.marks) for value, one in valued
    )
    missing = tuple(
        f"{one.label}: {' and '.join(_LACKING[need] for need in metric.needs if not one.has(need))}"
        for one in candidates
        if metric.value(one) is None
    )
    return Ranking(metric.name, metric.unit, metric.higher_is_better, basis, subject, rows, missing)


def rankings(subjects: Sequence[Subject], prices: PriceList | None) -> Iterator[Ranking]:
    """Yield every ranking: for each network the common configuration, then own bests; then what was quoted.

    Where the common configuration is each card's own best as well, the ranking says so and stands once.
    """
    for network in _networks(subjects):
        common = common_configuration(subjects, network)
        shared = () if common is None else tuple(_common(subjects, common, prices))
        own = tuple(_own_bests(subjects, network, prices))
        for ranking in shared:
            yield msgspec.structs.replace(ranking, is_own_best=any(_are_same(ranking, best) for best in own))
        yield from (best for best in own if not any(_are_same(ranking, best) for ranking in shared))
    if prices is not None:
        yield from _quoted(prices)


def _are_same(one: Ranking, other: Ranking) -> bool:
    return (one.metric, one.rows) == (other.metric, other.rows)


def common_configuration(subjects: Sequence[Subject], network: str) -> Configuration | None:
    """Return the configuration of a network that every subject has and in which they are fastest together.

    Together is the geometric mean, so that no card's figures weigh more than another's. None for fewer than two
    subjects, and where nothing was measured on all.
    """
    found = [{at: point for at, point in one.best if at.setting.network == network} for one in subjects]
    shared = set.intersection(*(set(one) for one in found)) if len(found) > 1 else set()
    if not shared:
        return None
    return max(sorted(shared), key=lambda at: math.fsum(math.log(one[at].images_per_second) for one in found))


def notes(subjects: Sequence[Subject]) -> Iterator[str]:
    """Yield a line for each network that has no ranking of all cards, saying why."""
    for network in _networks(subjects) if len(subjects) > 1 else ():
        if common_configuration(subjects, network) is not None:
            continue
        versions = [{at.method_version for at, _ in one.best if at.setting.network == network} for one in subjects]
        if all(versions) and not set.intersection(*versions):
            told = ", ".join(str(version) for version in sorted(set.union(*versions)))
            yield f"{network}: not ranked together, measured by method versions {told}"
        else:
            yield f"{network}: no configuration was measured on all, so that only own bests are ranked"


def unranked(subjects: Sequence[Subject], prices: PriceList | None) -> Iterator[str]:
    """Yield a line for each metric in which nothing could be ranked, saying why."""
    measured = [_candidate(one, at, point, prices) for one in subjects for at, point in one.best]
    published = [one for group in _published(prices).values() for one in group] if prices else []
    for metric in metrics(prices):
        if measured and all(metric.value(one) is None for one in measured):
            nobody = [_NOBODY[need] for need in metric.needs if not any(one.has(need) for one in measured)]
            yield f"no rank by {metric.name}: {' and '.join(nobody) or _NOT_BOTH}"
        if "price" in metric.needs and published and all(metric.value(one) is None for one in published):
            yield f"no rank of published throughputs by {metric.name}: the price list gives no watts beside them"


def _networks(subjects: Sequence[Subject]) -> list[str]:
    return sorted({at.setting.network for one in subjects for at, _ in one.best})


def _common(subjects: Sequence[Subject], at: Configuration, prices: PriceList | None) -> Iterator[Ranking]:
    candidates = [_candidate(one, at, dict(one.best)[at], prices) for one in subjects]
    for metric in metrics(prices):
        ranking = rank(candidates, metric, "common", f"{at}, method {at.method_version}")
        if ranking:
            yield ranking


def _own_bests(subjects: Sequence[Subject], network: str, prices: PriceList | None) -> Iterator[Ranking]:
    kinds = sorted({_kind(at) for one in subjects for at, _ in one.best if at.setting.network == network})
    for kind in kinds:
        _, size, limit_bytes, version = kind
        limit = f", limit {limit_bytes / 2**30:g} GiB" if limit_bytes else ""
        for metric in metrics(prices):
            candidates = [best for one in subjects if (best := _own_best(one, kind, metric, prices))]
            ranking = rank(candidates, metric, "own_best", f"{network} {size} px{limit}, method {version}")
            if ranking:
                yield ranking


def _own_best(
    subject: Subject, kind: tuple[str, int, int, int], metric: Metric, prices: PriceList | None
) -> Candidate | None:
    """Return a subject's best by a metric; where it has no value there, its fastest, so that it is seen left out."""
    sign = 1 if metric.higher_is_better else -1

    def order(one: Candidate) -> tuple[bool, float]:
        value = metric.value(one)
        return value is not None, one.images_per_second if value is None else sign * value

    own = [_candidate(subject, at, point, prices) for at, point in subject.best if _kind(at) == kind]
    return max(own, key=order, default=None)


def _kind(at: Configuration) -> tuple[str, int, int, int]:
    return at.setting.network, at.setting.size, at.setting.memory_limit_bytes, at.method_version


def _candidate(subject: Subject, at: Configuration, point: Point, prices: PriceList | None) -> Candidate:
    return Candidate(
        label=subject.label,
        configuration=str(at),
        images_per_second=point.images_per_second,
        images_per_second_per_watt=images_per_second_per_watt(point),
        price=prices.price_of(*subject.names) if prices else None,
        marks=marks(point.record),
    )


def _quoted(prices: PriceList) -> Iterator[Ranking]:
    for circumstances, candidates in _published(prices).items():
        for metric in metrics(prices):
            ranking = rank(candidates, metric, "quoted", circumstances)
            if ranking:
                yield ranking


def _published(prices: PriceList) -> Mapping[str, Sequence[Candidate]]:
    """Return the list's published throughputs by what is said of how they were reached."""
    groups: dict[str, list[Candidate]] = {}
    for card in prices.card:
        if card.images_per_second is not None:
            groups.setdefault(card.circumstances, []).append(
                Candidate(
                    label=card.name,
                    configuration=card.source or "source not said",
                    images_per_second=card.images_per_second,
                    images_per_second_per_watt=card.images_per_second / card.watts if card.watts else None,
                    price=card.price,
                )
            )
    return groups
