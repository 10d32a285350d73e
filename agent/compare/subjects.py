"""What is compared: every card of every result, under a label of its own, with its measurements."""

from collections.abc import Iterable, Sequence

import msgspec

from agent.bench.analysis import Setting, curves
from agent.bench.model import BenchResult, CardFacts
from agent.bench.points import Point, points
from agent.model.text import clean_label


class Configuration(msgspec.Struct, frozen=True, order=True):
    """What must be equal before two throughputs are held against each other."""

    setting: Setting
    batch: int
    method_version: int

    def __str__(self) -> str:
        """Return it for people, as ``resnet50 bf16 xla 224 px, batch 256``."""
        return f"{self.setting}, batch {self.batch}"


class Subject(msgspec.Struct, frozen=True):
    """One card of one result."""

    label: str
    result_label: str
    result: BenchResult
    facts: CardFacts | None
    """None on a CPU."""
    best: tuple[tuple[Configuration, Point], ...]
    """The middle measurement of each configuration of our own step on this card alone, in their order."""

    @property
    def card(self) -> str:
        """The card's name; the processor's on a CPU."""
        return clean_label((self.facts.name if self.facts else self.result.machine.cpu) or "unknown card")

    @property
    def names(self) -> tuple[str, ...]:
        """What a price list may call it, the most particular name first."""
        return self.label, self.result_label, clean_label(self.result.label), self.card


def subjects(results: Sequence[BenchResult], files: Sequence[str] = ()) -> tuple[Subject, ...]:
    """Return the cards of all results in their order; a result without a training figure is there too."""
    named = zip(results, labels(results, files), strict=True)
    return tuple(subject for result, label in named for subject in _cards(result, label))


def labels(results: Sequence[BenchResult], files: Sequence[str] = ()) -> tuple[str, ...]:
    """Return a label for each result, which no other has.

    It is its own; where several have the same, the name of its file is added where ``files`` has them, and what is
    the same still is numbered from the second on.
    """
    own = [clean_label(result.label) or "unnamed" for result in results]
    named = zip(own, files or [""] * len(own), strict=True)
    found: list[str] = []
    for plain in [f"{label} ({file})" if file and own.count(label) > 1 else label for label, file in named]:
        label, number = plain, 1
        while label in found:
            number += 1
            label = f"{plain} ({number})"
        found.append(label)
    return tuple(found)


def _cards(result: BenchResult, label: str) -> Iterable[Subject]:
    facts = {card.id: card for card in result.machine.cards}
    measured: dict[str, list[Point]] = {}
    for point in own_points(result):
        measured.setdefault(point.record.uuid, []).append(point)
    for name in measured or (next(iter(facts), "cpu"),):
        card = facts.get(name)
        own = label if len(measured) < 2 or card is None else f"{label}, card {card.index}"
        yield Subject(own, label, result, card, best_of(measured.get(name, [])))


def own_points(result: BenchResult) -> list[Point]:
    """Return the measurements of our own step on one card alone, under the memory limit of the whole result."""
    return [
        point
        for point in points(result)
        if point.replicas == 1 and point.accumulate == 1 and not point.variant
        if point.memory_limit_bytes == result.memory_limit_bytes
    ]


def best_of(measured: Sequence[Point]) -> tuple[tuple[Configuration, Point], ...]:
    """Return the middle measurement of each configuration, in their order."""
    versions = sorted({point.record.result.method_version for point in measured})
    return tuple(
        (Configuration(curve.setting, point.batch, version), point)
        for version in versions
        for curve in curves(point for point in measured if point.record.result.method_version == version)
        for point in curve.points
    )
