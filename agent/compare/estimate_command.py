"""``heatsoak estimate``: how long a training takes, and what it costs."""

import math
from pathlib import Path

import click
import msgspec

from agent import usage
from agent.bench.model import BenchResult
from agent.bench.points import NETWORKS
from agent.bench.store import load
from agent.compare.estimate import (
    USUAL,
    Estimate,
    Share,
    of_cards,
    share_of,
    throughput_of,
    time_text,
)
from agent.compare.estimate import (
    estimate as estimate_time,
)


class _Number(click.FloatRange):
    """A number within bounds; click's own type lets NaN pass."""

    def convert(self, value: float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or end with what is wrong with it."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


_ABOVE_0 = _Number(min=1e-9, max=1e12)
_SHARE = _Number(min=1e-6, max=1)


@click.command()
@click.option("--samples", type=click.IntRange(1, 10**15), required=True, help="Images in the training set.")
@click.option("--epochs", type=_ABOVE_0, required=True, help="How often each is seen.")
@click.option("--throughput", type=_ABOVE_0, help="Images a second of one card.")
@click.option("--result", "path", type=click.Path(path_type=Path), help="Take it from a result of heatsoak bench.")
@click.option("--network", type=click.Choice(NETWORKS), default="resnet50", show_default=True, help="With --result.")
@click.option("--dtype", default="", help="With --result: bf16, fp16, tf32 or fp32. Default: the fastest.")
@click.option("--batch", type=click.IntRange(1), help="With --result: images a step. Default: the fastest.")
@click.option(
    "--size", type=click.IntRange(1), help="With --result: image side in pixels. Default: 224, else the largest."
)
@click.option("--share", type=_SHARE, help="Share of it that a training keeps. Default: as measured, else 0.7.")
@click.option("--cards", type=click.IntRange(1, 10**6), default=1, show_default=True, help="Cards that train together.")
@click.option("--efficiency", type=_SHARE, help="What several cards reach of their sum. Default: as measured.")
@click.option("--price-per-hour", type=_ABOVE_0, help="Of one card, in any currency.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def estimate(
    context: click.Context,
    samples: int,
    epochs: float,
    throughput: float | None,
    path: Path | None,
    network: str,
    dtype: str,
    batch: int | None,
    size: int | None,
    share: float | None,
    cards: int,
    efficiency: float | None,
    price_per_hour: float | None,
    *,
    as_json: bool,
) -> None:
    """Estimate a training's time: samples x epochs / (throughput x effective share).

    \f
    Raises:
        click.UsageError: Where the throughput comes from is not said, or said twice.
    """  # noqa: D301 - click ends its help at the form feed
    if (throughput is None) == (path is None):
        given = "both were" if path else "neither was"
        raise click.UsageError(f"give --throughput, or --result with a file of heatsoak bench; {given} given")
    if path is None:
        usage.refuse(context, ("network", "dtype", "batch", "size"), "without --result")
    if cards == 1:
        usage.refuse(context, ("efficiency",), "without --cards of 2 or more")
    result = load(path) if path else None
    if result is None:
        found = of_cards(throughput or 0.0, cards, efficiency, f"{throughput:,.1f} images/s of one card, as given")
    else:
        found = throughput_of(
            result, network=network, dtype=dtype, batch=batch or 0, size=size or 0, cards=cards, efficiency=efficiency
        )
    made = estimate_time(samples, epochs, found, _share(share, result), price_per_hour)
    click.echo(msgspec.json.encode(made).decode() if as_json else "\n".join(_lines(made)))


def _share(given: float | None, result: BenchResult | None) -> Share:
    if given is not None:
        return Share(given, given, given, "given", "as given")
    measured = share_of(result) if result else None
    return measured or USUAL


def _lines(made: Estimate) -> list[str]:
    has_range = made.shortest_s != made.longest_s
    range_text = f", from {time_text(made.shortest_s)} to {time_text(made.longest_s)}" if has_range else ""
    lines = [
        f"time         {time_text(made.time_s)}{range_text}",
        f"work         {made.samples:,} images x {made.epochs:g} epochs",
        f"throughput   {made.throughput.images_per_second:,.1f} images/s: {made.throughput.detail}",
        f"share kept   {made.share.value:.2f}: {made.share.detail}",
    ]
    if made.cost is not None and made.cheapest is not None and made.dearest is not None:
        range_text = f", from {made.cheapest:,.2f} to {made.dearest:,.2f}" if has_range else ""
        lines.append(f"cost         {made.cost:,.2f}{range_text}, at {made.price_per_hour:g} an hour and card")
    return [*lines, *(f"caution      {caution}" for caution in made.cautions)]
