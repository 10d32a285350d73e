"""What others published about cards: the shipped table, and where a measured card stands beside it."""

import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from importlib import resources
from typing import Final, Literal

import msgspec

from agent.compare.model import Standing
from agent.compare.prices import plain_name
from agent.compare.subjects import Subject
from agent.probes.show import quantity_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PUBLISHED_SIZE: Final = 224
"""Image side of every published training figure, in pixels."""
LEAST_TIMES: Final = 0.05
"""A measured figure that is a smaller part of a published one says nothing beside it."""
UNITS: Final[Mapping[str, str]] = {"training": "images/s", "matmul": "flop/s"}


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Where figures were read."""

    title: str
    url: str
    read: date
    method: str
    caveat: str


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One published figure, or the range of several."""

    source: str
    card: str
    driver_name: str = ""
    """The name that the driver gives the card, empty where it is not known for certain."""
    quantity: Literal["training", "matmul"]
    network: Literal["", "resnet50", "vgg16"] = ""
    precisions: tuple[Literal["bf16", "fp16", "tf32", "fp32", "fp64"], ...]
    batch: str = ""
    low: float
    high: float
    note: str = ""

    @property
    def name(self) -> str:
        """What was measured: the network, or ``matmul``."""
        return self.network or self.quantity


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The whole table; every row's source is among the sources."""

    sources: Mapping[str, Source]
    rows: tuple[Row, ...]


@functools.cache
def published() -> Table:
    """Return the shipped table."""
    text = (resources.files("agent") / "data" / "published.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), type=Table)


def range_text(low: float, high: float, unit: str) -> str:
    """Return a range with its unit, as ``400.3 to 1,019.6 images/s``; one number where both ends are the same."""
    ends = quantity_text(low, unit), quantity_text(high, unit)
    if ends[0] == ends[1]:
        return ends[0]
    number, _, told = ends[0].partition(" ")
    return f"{number if ends[1].endswith(f' {told}') else ends[0]} to {ends[1]}"


def standings(subjects: Sequence[Subject], table: Table) -> Iterator[Standing]:
    """Yield each published figure that a subject measured something like, the highest first.

    Alike are network and data type at 224 px, on one card, in the best mode and batch that was measured; matrix
    products whatever their shape, which is told. Published figures are of cards, so a CPU stands beside none.
    """
    for subject in subjects:
        found = [one for one in _all_beside(subject, table) if not _is_far(one)]
        yield from sorted(found, key=lambda one: (one.quantity, one.precision, -one.published_high, one.card))


def not_beside(subjects: Sequence[Subject], table: Table) -> Iterator[str]:
    """Yield a line for what is not set beside published figures, saying why."""
    cpus = [one.label for one in subjects if one.facts is None]
    if cpus:
        yield f"published figures are of cards; not set beside them: {', '.join(cpus)}"
    for subject in subjects:
        beside = list(_all_beside(subject, table))
        if subject.facts and not beside:
            yield f"{subject.label}: nothing measured is like a published figure"
    far = [one.label for one in subjects if any(map(_is_far, _all_beside(one, table)))]
    if far:
        yield f"published figures more than {1 / LEAST_TIMES:.0f} times the measured one are left out: {', '.join(far)}"


def _is_far(one: Standing) -> bool:
    return one.times[0] < LEAST_TIMES


def _all_beside(subject: Subject, table: Table) -> Iterator[Standing]:
    for row in table.rows if subject.facts else ():
        yield from _beside(subject, row, table)


def _beside(subject: Subject, row: Row, table: Table) -> Iterator[Standing]:
    for precision in row.precisions:
        found = _training(subject, row, precision) if row.quantity == "training" else _product(subject, precision)
        if found is not None:
            measured, measured_at = found
            yield Standing(
                label=subject.label,
                quantity=row.name,
                precision=precision,
                measured=measured,
                measured_at=measured_at,
                unit=UNITS[row.quantity],
                card=row.card,
                same_model=bool(row.driver_name) and plain_name(row.driver_name) == plain_name(subject.card),
                published_low=row.low,
                published_high=row.high,
                batch=row.batch,
                source=table.sources[row.source].title,
                note=row.note,
            )


def _training(subject: Subject, row: Row, precision: str) -> tuple[float, str] | None:
    """Return the best like throughput, and the mode and batch it was reached with."""
    wanted = (row.network, precision, PUBLISHED_SIZE)
    alike = (
        (point.images_per_second, f"{at.setting.mode}, batch {at.batch}")
        for at, point in subject.best
        if (at.setting.network, at.setting.dtype, at.setting.size) == wanted
    )
    return max(alike, default=None)


def _product(subject: Subject, precision: str) -> tuple[float, str] | None:
    """Return the best product of a number type, and its shape."""
    owner = subject.facts.id if subject.facts else ""
    answers = (
        record.result
        for step in subject.result.steps
        for record in step.records
        if (record.result.probe, record.result.dtype, record.uuid) == ("matmul", precision, owner)
    )
    return max(((one.value, one.shape) for one in answers if one.value is not None), default=None)
