"""The named figures of results, each beside the same figure of the others: like stands beside like only."""

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from agent.bench.analysis import IMAGENET_SIZE, images_per_second_per_watt, scaling
from agent.bench.model import BenchResult
from agent.bench.points import Point, points
from agent.compare.model import Headlines
from agent.compare.subjects import Configuration, best_of, own_points
from agent.probes.attribution import MOST_HOST_SHARE

Owned = dict[Configuration, Point]
"""The measurements of one result on one card."""


class Key(msgspec.Struct, frozen=True):
    """Which figure of which measurement; values under equal keys are like."""

    name: str
    unit: str
    shape: str = ""
    """Of an operation; a training's is in its name."""
    method_version: int = 1
    memory_limit_bytes: int = 0

    @property
    def circumstances(self) -> tuple[str, ...]:
        """What is told of figures of one name that differ in it."""
        limit = f"limit {self.memory_limit_bytes / 2**30:g} GiB" if self.memory_limit_bytes else "no memory limit"
        return self.shape, f"method {self.method_version}", limit


class Value(msgspec.Struct, frozen=True):
    """One headline figure of one result."""

    value: float
    repeatable: bool = False
    """Whether two runs on the same card must agree: it measures a card, not the host."""


def headlines(results: Sequence[BenchResult]) -> tuple[Headlines, ...]:
    """Return every named figure of the results; None where one was not measured alike.

    Of each network, number type and mode one image size and batch is told: those that most results have, then
    224 px or the largest images, then the fastest batch. What differs between figures of one name is added to it:
    shape, version of the method, memory limit.
    """
    chosen = _shared([dict(best_of(own_points(result))) for result in results])
    found = [_found(result, own) for result, own in zip(results, chosen, strict=True)]
    keys = dict.fromkeys(key for one in found for key in one)
    names = _told_apart(list(keys))
    return tuple(
        Headlines(
            name=names[key],
            unit=key.unit,
            values=tuple(one[key].value if key in one else None for one in found),
            repeatable=all(one[key].repeatable for one in found if key in one),
        )
        for key in keys
    )


def _told_apart(keys: Sequence[Key]) -> Mapping[Key, str]:
    """Return a name for each key that no other has."""
    named: dict[str, list[Key]] = {}
    for key in keys:
        named.setdefault(key.name, []).append(key)
    told = {}
    for name, same in named.items():
        differing = [len(set(column)) > 1 for column in zip(*(key.circumstances for key in same), strict=True)]
        for key in same:
            extra = [text for text, differs in zip(key.circumstances, differing, strict=True) if differs and text]
            told[key] = ", ".join((name, *extra))
    return told


def _found(result: BenchResult, own: Owned) -> dict[Key, Value]:
    found: dict[Key, Value] = {}
    for key, value in (*_operations(result), *_training(result, own), *_scaled(result)):
        found.setdefault(key, value)
    return found


def _operations(result: BenchResult) -> Iterator[tuple[Key, Value]]:
    first = result.machine.cards[0].index if result.machine.cards else None
    for step in result.steps:
        for record in step.records:
            answer = record.result
            if answer.value is None or record.gpu not in (None, first):
                continue
            if answer.probe == "matmul":
                name, on_card = f"matmul {answer.dtype}", True
            elif answer.probe == "bandwidth":
                name = f"bandwidth {answer.variant.replace('_', ' ')}"
                on_card = answer.variant.startswith("device_") and not answer.variant.endswith("_host")
            else:
                continue
            key = Key(name, answer.unit, answer.shape, answer.method_version, step.memory_limit_bytes)
            yield key, Value(answer.value, on_card and _on_card(result))


def _training(result: BenchResult, own: Owned) -> Iterator[tuple[Key, Value]]:
    for at, point in own.items():
        name, alike = _name(point), (at.method_version, at.setting.memory_limit_bytes)
        yield Key(name, "images/s", "", *alike), Value(point.images_per_second, _on_card(result) and _steady(point))
        efficiency, joules = images_per_second_per_watt(point), point.joules_per_image
        if efficiency is not None and joules is not None:
            yield Key(f"{name}, per watt", "images/s/W", "", *alike), Value(efficiency)
            yield Key(f"{name}, energy", "J/image", "", *alike), Value(joules)


def _scaled(result: BenchResult) -> Iterator[tuple[Key, Value]]:
    for spread in scaling(points(result)):
        many, steady = spread.many, all(map(_steady, spread.alone))
        name, alike = (
            f"{_name(many)} on {many.replicas} cards",
            (many.record.result.method_version, many.memory_limit_bytes),
        )
        yield Key(name, "images/s", "", *alike), Value(many.images_per_second, steady)
        yield Key(f"{name}, efficiency", "", "", *alike), Value(spread.efficiency, steady)


def _name(point: Point) -> str:
    size = "" if point.size == IMAGENET_SIZE else f"{point.size} px"
    step = " ".join(filter(None, (point.network, point.dtype, point.mode, size, point.variant)))
    more = f", {point.accumulate} batches accumulated" if point.accumulate > 1 else ""
    return f"{step}, batch {point.batch}{more}"


def _steady(point: Point) -> bool:
    timing = point.record.result.timing
    return timing is not None and (timing.host_share is None or timing.host_share < MOST_HOST_SHARE)


def _on_card(result: BenchResult) -> bool:
    return result.machine.device == "gpu"


def _shared(owned: Sequence[Owned]) -> list[Owned]:
    """Return for each result the measurements to tell of: of each series the one that most results have.

    Results that have it not choose again among themselves, so that none loses a series.
    """
    kept: list[Owned] = [{} for _ in owned]
    for series in sorted({_series(at) for one in owned for at in one}):
        left = [place for place, one in enumerate(owned) if any(_series(at) == series for at in one)]
        while left:
            held: dict[Configuration, list[Point]] = {}
            for place in left:
                for at, point in owned[place].items():
                    if _series(at) == series:
                        held.setdefault(at, []).append(point)
            best = max(held, key=lambda at: _worth(at, held[at]))
            for place in left:
                if best in owned[place]:
                    kept[place][best] = owned[place][best]
            left = [place for place in left if best not in owned[place]]
    return kept


def _series(at: Configuration) -> tuple[str, str, str, int, int]:
    setting = at.setting
    return setting.network, setting.dtype, setting.mode, setting.memory_limit_bytes, at.method_version


def _worth(at: Configuration, measured: Sequence[Point]) -> tuple[int, bool, int, float]:
    """Return what decides: how many results have it, the size of the images, how fast they are together."""
    speed = math.fsum(math.log(point.images_per_second) for point in measured) / len(measured)
    return len(measured), at.setting.size == IMAGENET_SIZE, at.setting.size, speed
