"""How long a training takes: samples x epochs / (throughput x effective share), with its range."""

from typing import Final, Literal

import msgspec

from agent.bench.analysis import scaling, usual_size
from agent.bench.model import BenchResult
from agent.bench.points import Point, points
from agent.errors import ConfigError

Origin = Literal["usual", "given", "measured"]
_DAY_S, _HOUR_S, _MINUTE_S = 86400.0, 3600.0, 60.0


class Share(msgspec.Struct, frozen=True):
    """The share of a step's own throughput that a whole training keeps: input, evaluation, checkpoints, 0 to 1."""

    value: float
    low: float
    high: float
    origin: Origin
    detail: str
    host_images_per_second: float | None = None
    """What the host fed by itself, which no number of cards exceeds; None where not measured."""


USUAL: Final = Share(0.7, 0.6, 0.8, "usual", "0.6 to 0.8 is usual; not measured here")


class Throughput(msgspec.Struct, frozen=True):
    """Images a second of all cards together, and where that is known from."""

    images_per_second: float
    cards: int
    detail: str


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
    caution: str = ""
    """What stands against the estimate, empty where nothing does."""


class _Fed(msgspec.Struct, frozen=True):
    """A card that was fed by the input pipeline: the share of its own rate that it kept, and at which step."""

    share: float
    where: str
    host_images_per_second: float | None


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
        caution=_caution(throughput, share),
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


def _caution(throughput: Throughput, share: Share) -> str:
    fed, wanted = share.host_images_per_second, throughput.images_per_second * share.value
    if fed is None or wanted <= fed:
        return ""
    return f"it takes {wanted:,.0f} images/s, but the host alone fed {fed:,.0f} where this was measured"


def of_cards(images_per_second: float, cards: int, efficiency: float | None, detail: str) -> Throughput:
    """Return the throughput of ``cards`` from that of one.

    Raises:
        ConfigError: There are several cards and how well they work together is not known.
    """
    if cards == 1:
        return Throughput(images_per_second, 1, detail)
    if efficiency is None:
        raise ConfigError(
            [f"--cards {cards} needs --efficiency: throughput of {cards} cards / ({cards} x that of one), 0 to 1"]
        )
    told = f"{detail}, x {cards} cards at efficiency {efficiency:g}"
    return Throughput(images_per_second * cards * efficiency, cards, told)


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
            return Throughput(best.images_per_second, cards, f"{_told(best)}, measured on {cards} cards")
    alone = [one for one in fitting if one.replicas == 1]
    if not alone:
        asked = _asked(network, dtype, batch, size)
        raise ConfigError([f"{asked} was not measured; measured were {_measured(every)}"])
    best = _best(alone)
    if cards > 1 and efficiency is None:
        efficiency = _efficiency(result, network, cards)
    return of_cards(best.images_per_second, cards, efficiency, f"{_told(best)}, measured")


def share_of(result: BenchResult) -> Share | None:
    """Return the share that the input pipeline probe measured: fed over not fed; None where it was not measured.

    The range goes from the untuned pipeline to the tuned one.
    """
    tuned, untuned = _fed(result, "together_tuned"), _fed(result, "together_untuned")
    if tuned is None:
        return None
    detail = f"measured with the input pipeline at {tuned.where}: tuned {tuned.share:.2f}"
    detail += "" if untuned is None else f", untuned {untuned.share:.2f}"
    low = tuned.share if untuned is None else min(tuned.share, untuned.share)
    return Share(tuned.share, low, tuned.share, "measured", detail, tuned.host_images_per_second)


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
    answers = (record.result for step in result.steps for record in step.records)
    for answer in answers:
        alone = answer.figures.get("card_images_per_second")
        if (answer.probe, answer.variant, answer.status) == ("pipeline", variant, "ok") and answer.value and alone:
            where = f"{answer.dtype} {answer.shape}".strip()
            return _Fed(min(1.0, answer.value / alone), where, answer.figures.get("host_images_per_second"))
    return None


def _efficiency(result: BenchResult, network: str, cards: int) -> float | None:
    measured = (one for one in scaling(points(result)) if (one.many.network, one.many.replicas) == (network, cards))
    return max((one.efficiency for one in measured), default=None)


def _best(measured: list[Point]) -> Point:
    return max(measured, key=lambda one: one.images_per_second)


def _told(one: Point) -> str:
    return f"{one.network} {one.dtype} {one.mode}, {one.size} px, batch {one.batch}"


def _asked(network: str, dtype: str, batch: int, size: int) -> str:
    numbers = (f"{size} px" if size else "", f"batch {batch}" if batch else "")
    return " ".join(filter(None, (network, dtype, *numbers)))


def _measured(own: list[Point]) -> str:
    kinds = sorted({(one.dtype, one.size, one.batch) for one in own})
    told = (f"{dtype} {size} px batch {batch}" for dtype, size, batch in kinds[:12])
    return ", ".join(told) or "no training steps of this network"
