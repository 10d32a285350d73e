"""How long a training takes: samples x epochs / (throughput x effective share), with its range."""

import re
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from agent.bench.analysis import IMAGENET_SIZE, scaling, usual_size
from agent.bench.marks import marks, marks_text
from agent.bench.model import BenchResult
from agent.bench.points import Point, points
from agent.errors import ConfigError
from agent.model.probe import ProbeRecord

Origin = Literal["usual", "given", "measured"]
_DAY_S, _HOUR_S, _MINUTE_S = 86400.0, 3600.0, 60.0
REST, LEAST_REST = 0.9, 0.8
"""What evaluation, checkpoints and hiccups leave of a training that is fed: assumed, at best 1; nobody measured it."""
_SHAPE: Final = re.compile(r"(\d{1,9})x(\d{1,9})x\d{1,9}x\d{1,9}", re.ASCII)
_LIKE_BATCHES: Final = 2.0
"""Steps whose batches differ by no more than this factor wait alike for their input."""


class At(msgspec.Struct, frozen=True):
    """Which training step something was measured at."""

    network: str
    dtype: str
    mode: str
    size: int
    """Image side in pixels."""
    batch: int
    """Images a step and card."""

    def __str__(self) -> str:
        """Return it for people, as ``resnet50 bf16 xla, 224 px, batch 128``."""
        return f"{self.network} {self.dtype} {self.mode}, {self.size} px, batch {self.batch}"

    def is_like(self, other: "At") -> bool:
        """Return whether a step waits for its input as the other does."""
        same = (self.network, self.dtype, self.mode, self.size) == (other.network, other.dtype, other.mode, other.size)
        return same and 1 / _LIKE_BATCHES <= self.batch / other.batch <= _LIKE_BATCHES


class Share(msgspec.Struct, frozen=True):
    """The share of a step's own throughput that a whole training keeps: input, evaluation, checkpoints, 0 to 1."""

    value: float
    low: float
    high: float
    origin: Origin
    detail: str
    host_images_per_second: float | None = None
    """What the host fed by itself, which no number of cards exceeds; None where not measured."""
    at: At | None = None
    """The step that was fed; None where the share was not measured."""
    doubts: tuple[str, ...] = ()
    """What stands against the share."""


USUAL: Final = Share(0.7, 0.6, 0.8, "usual", "0.6 to 0.8 is usual; not measured here")


class Throughput(msgspec.Struct, frozen=True):
    """Images a second of all cards together, and where that is known from."""

    images_per_second: float
    cards: int
    detail: str
    at: At | None = None
    """None where it was given."""
    marks: tuple[str, ...] = ()
    """What disturbed the measurement."""


class Estimate(msgspec.Struct, frozen=True):
    """A training's time in seconds, and its cost where a price was given."""

    samples: int
    epochs: float
    throughput: Throughput
    share: Share
    time_s: float
    shortest_s: float
    longest_s: float
    price_per_hour: float | None = None
    """Of one card."""
    cost: float | None = None
    cheapest: float | None = None
    dearest: float | None = None
    cautions: tuple[str, ...] = ()
    """What stands against the estimate."""


class _Fed(msgspec.Struct, frozen=True):
    """A card that was fed by the input pipeline: the share of its own rate that it kept, at most 1."""

    share: float
    record: ProbeRecord
    host_images_per_second: float | None

    @property
    def at(self) -> At | None:
        """The step that was fed, always ResNet-50's; None where its shape is none of a step."""
        result = self.record.result
        shape = _SHAPE.fullmatch(result.shape)
        return At("resnet50", result.dtype, result.mode, int(shape[2]), int(shape[1])) if shape else None


def estimate(
    samples: int, epochs: float, throughput: Throughput, share: Share = USUAL, price_per_hour: float | None = None
) -> Estimate:
    """Return how long ``epochs`` over ``samples`` images take; ``price_per_hour`` is that of one card."""
    own_s = samples * epochs / throughput.images_per_second
    made = Estimate(
        samples=samples,
        epochs=epochs,
        throughput=throughput,
        share=share,
        time_s=own_s / share.value,
        shortest_s=own_s / share.high,
        longest_s=own_s / share.low,
        cautions=tuple(_cautions(throughput, share)),
    )
    if price_per_hour is None:
        return made
    per_second = throughput.cards * price_per_hour / _HOUR_S
    return msgspec.structs.replace(
        made,
        price_per_hour=price_per_hour,
        cost=made.time_s * per_second,
        cheapest=made.shortest_s * per_second,
        dearest=made.longest_s * per_second,
    )


def _cautions(throughput: Throughput, share: Share) -> Iterator[str]:
    if throughput.marks:
        yield f"the throughput was {', '.join(throughput.marks)}: it says more of the circumstances than of the card"
    if throughput.at and throughput.at.size != IMAGENET_SIZE:
        yield f"the throughput is that of images of {throughput.at.size} px; larger ones take longer"
    yield from share.doubts
    if share.at and throughput.at and not share.at.is_like(throughput.at):
        yield f"the share was measured at {share.at}, another step: a faster one waits longer for its input"
    fed, wanted = share.host_images_per_second, throughput.images_per_second * share.value
    if fed is not None and wanted > fed:
        yield f"it takes {wanted:,.0f} images/s, but the host alone fed {fed:,.0f} where this was measured"


def of_cards(
    images_per_second: float,
    cards: int,
    efficiency: float | None,
    detail: str,
    at: At | None = None,
    disturbed: tuple[str, ...] = (),
) -> Throughput:
    """Return the throughput of ``cards`` from that of one, which was measured ``at`` a step.

    Raises:
        ConfigError: There are several cards and how well they work together is not known.
    """
    if cards == 1:
        return Throughput(images_per_second, 1, detail, at, disturbed)
    if efficiency is None:
        raise ConfigError(
            [f"--cards {cards} needs --efficiency: throughput of {cards} cards / ({cards} x that of one), 0 to 1"]
        )
    told = f"{detail}, x {cards} cards at efficiency {efficiency:g}"
    return Throughput(images_per_second * cards * efficiency, cards, told, at, disturbed)


def throughput_of(
    result: BenchResult, *, network: str, dtype: str, batch: int, cards: int, efficiency: float | None, size: int = 0
) -> Throughput:
    """Return the best throughput in a result that fits; ``dtype`` empty and ``batch`` 0 leave the choice.

    ``size`` is the side of the images in pixels; 0 for 224, or the largest measured where that was not.

    On several cards it is the one measured on as many, else that of one card times ``efficiency``, else times the
    efficiency that the result measured on as many.

    Raises:
        ConfigError: Nothing that fits was measured, or the efficiency is not known.
    """
    every = [one for one in points(result) if not one.variant and one.accumulate == 1 and one.network == network]
    size = size or usual_size(one.size for one in every)
    own = [one for one in every if one.size == size]
    fitting = [one for one in own if (not dtype or one.dtype == dtype) and (not batch or one.batch == batch)]
    if cards > 1 and efficiency is None:
        spread = [one for one in fitting if one.replicas == cards]
        if spread:
            best = _best(spread)
            told = f"{_at(best)}, measured on {cards} cards"
            return Throughput(best.images_per_second, cards, told, _at(best), marks(best.record))
    alone = [one for one in fitting if one.replicas == 1]
    if not alone:
        asked = _asked(network, dtype, batch, size)
        raise ConfigError([f"{asked} was not measured; measured were {_measured(every)}"])
    best = _best(alone)
    if cards > 1 and efficiency is None:
        efficiency = _efficiency(result, network, cards)
    at = _at(best)
    return of_cards(best.images_per_second, cards, efficiency, f"{at}, measured", at, marks(best.record))


def share_of(result: BenchResult) -> Share | None:
    """Return the share that follows from the input pipeline as measured; None where it was not measured.

    It is what the tuned pipeline kept of the card's own rate, times :data:`REST`, since input is not all that a
    training waits for. The range reaches from the slower pipeline with :data:`LEAST_REST` to the input alone.
    """
    tuned, untuned = _fed(result, "together_tuned"), _fed(result, "together_untuned")
    if tuned is None:
        return None
    fed = [one for one in (tuned, untuned) if one is not None]
    shares = [one.share for one in fed]
    told = f"tuned {tuned.share:.2f}" + (f", untuned {untuned.share:.2f}" if untuned else "")
    return Share(
        value=tuned.share * REST,
        low=min(shares) * LEAST_REST,
        high=max(shares),
        origin="measured",
        detail=f"input alone kept {told}, measured at {tuned.at or 'an unknown step'}; "
        f"times {REST:g}, from {LEAST_REST:g} to 1, for evaluation and checkpoints, which is assumed",
        host_images_per_second=tuned.host_images_per_second,
        at=tuned.at,
        doubts=tuple(_doubts(fed)),
    )


def _doubts(fed: list[_Fed]) -> Iterator[str]:
    disturbed = marks_text(one.record for one in fed)
    if disturbed:
        yield f"the input pipeline was measured {disturbed}"
    if fed[-1].share > fed[0].share:
        yield "the untuned input pipeline came out faster than the tuned one: they differ by less than they scatter"


def time_text(time_s: float) -> str:
    """Return a time in the two largest units that it fills, as ``3 d 4 h``."""
    if time_s >= _DAY_S:
        hours = round(time_s / _HOUR_S)
        return f"{hours // 24} d {hours % 24} h"
    if time_s >= _HOUR_S:
        minutes = round(time_s / _MINUTE_S)
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{time_s / _MINUTE_S:.0f} min" if time_s >= _MINUTE_S else f"{time_s:.0f} s"


def _fed(result: BenchResult, variant: str) -> _Fed | None:
    """Return the first good measurement of a pipeline variant."""
    for record in (record for step in result.steps for record in step.records):
        answer = record.result
        alone = answer.figures.get("card_images_per_second")
        if (answer.probe, answer.variant, answer.status) == ("pipeline", variant, "ok") and answer.value and alone:
            return _Fed(min(1.0, answer.value / alone), record, answer.figures.get("host_images_per_second"))
    return None


def _efficiency(result: BenchResult, network: str, cards: int) -> float | None:
    measured = (one for one in scaling(points(result)) if (one.many.network, one.many.replicas) == (network, cards))
    return max((one.efficiency for one in measured), default=None)


def _best(measured: list[Point]) -> Point:
    return max(measured, key=lambda one: one.images_per_second)


def _at(one: Point) -> At:
    return At(one.network, one.dtype, one.mode, one.size, one.batch)


def _asked(network: str, dtype: str, batch: int, size: int) -> str:
    numbers = (f"{size} px" if size else "", f"batch {batch}" if batch else "")
    return " ".join(filter(None, (network, dtype, *numbers)))


def _measured(own: list[Point]) -> str:
    kinds = sorted({(one.dtype, one.size, one.batch) for one in own})
    told = (f"{dtype} {size} px batch {batch}" for dtype, size, batch in kinds[:12])
    return ", ".join(told) or "no training steps of this network"
