"""A comparison as pictures, drawn by matplotlib, which the extra ``report`` brings."""

import io
import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

from agent.compare.model import Comparison, Figure, Picture, Ranking
from agent.model.text import clean_label

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
_LINES: Final = {"bf16": "-", "fp16": "--", "tf32": "-.", "fp32": ":"}
_MARKERS: Final = {"bf16": "o", "fp16": "s", "tf32": "^", "fp32": "D"}
_DTYPES: Final = ("bf16", "fp16", "tf32", "fp32")
_INK: Final = "#010203"
"""Stands for the colour of the text around a picture."""
_SIZE_INCHES: Final = (4.4, 3.0)
"""Narrow enough that a phone shows its texts in their own size."""
_ROW_INCHES: Final = 0.18
"""What each row of a legend adds to the height, so that the axes keep their size."""
_LONGEST_LABEL, _LEGEND_COLUMNS = 60, 52
_USUAL_BARS: Final = 6
_MOST_TICKS: Final = 8
_MOST_NUMBERED_BARS, _MOST_LEVEL_NUMBERS = 24, 6
_HOLLOW: Final = "hollow: contended, slowed or unsteady"
_IMAGENET_SIZE: Final = 224
_STYLE: Final[dict[Any, Any]] = {
    "text.parse_math": False,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10.0,
    "legend.fontsize": 9.0,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "legend.frameon": False,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_Line = tuple[str, str]
"""A label and a data type."""


def pictures(compared: Comparison) -> tuple[Picture, ...]:
    """Return every picture for which a comparison has figures."""
    with mpl.rc_context(_STYLE):
        return tuple(_pictures(compared))


def _pictures(compared: Comparison) -> Iterator[Picture]:
    own = [one for one in compared.figures if one.replicas == 1 and one.accumulate == 1 and not one.variant]
    for network in sorted({one.network for one in own}):
        alike = _at_one_size([one for one in own if one.network == network])
        size = f"{network}, {alike[0].size} px"
        yield _picture(f"throughput-{network}", f"Throughput over batch: {size}", partial(_curves, figures=alike))
        yield _picture(
            f"precision-{network}", f"Best throughput by data type and mode: {size}", partial(_bars, figures=alike)
        )
        if any(one.peak_bytes for one in alike):
            yield _picture(f"memory-{network}", f"Peak memory over batch: {size}", partial(_memory, figures=alike))
    if compared.scaling:
        yield _picture("scaling", "Speed-up over cards", partial(_scaling, compared=compared))
    priced = next((one for one in compared.rankings if one.metric == "throughput per price"), None)
    if priced:
        draw = partial(_prices, ranking=priced)
        yield _picture("price", f"{priced.unit}: {priced.subject}", draw, bars=len(priced.rows))


def _at_one_size(figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures of 224 px, else of the image size with most of them."""
    sizes = Counter(one.size for one in figures)
    size = _IMAGENET_SIZE if _IMAGENET_SIZE in sizes else sizes.most_common(1)[0][0]
    return [one for one in figures if one.size == size]


def _picture(name: str, title: str, draw: Callable[[Axes], None], bars: int = 0) -> Picture:
    """Return what ``draw`` draws; ``bars`` that lie on each other under their labels make the picture higher."""
    width_inches, height_inches = _SIZE_INCHES
    height_inches += max(0, bars - _USUAL_BARS) * 2 * _ROW_INCHES
    drawing = Drawing(figsize=(width_inches, height_inches), layout="constrained")
    axes = drawing.add_subplot()
    draw(axes)
    axes.grid(alpha=0.25)
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        told = [textwrap.fill(label, _LEGEND_COLUMNS) for label in labels]
        columns = 1 + (max(map(len, told)) < _LEGEND_COLUMNS // 2 - 4)
        rows = math.ceil(sum(label.count("\n") + 1 for label in told) / columns)
        drawing.set_size_inches(width_inches, height_inches + rows * _ROW_INCHES)
        drawing.legend(handles, told, loc="outside lower left", ncols=columns)
    stream = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": name}):
        drawing.savefig(stream, format="svg", transparent=True, metadata={"Date": None})
    return Picture(name, title, _inline(stream.getvalue(), name))


def _inline(svg: str, name: str) -> str:
    """Return a picture fit to stand in a page: no prologue, ids of its own, the page's colour."""
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", svg, count=1)
    return re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", svg, count=1).replace(_INK, "currentColor")


def _lines(figures: Sequence[Figure]) -> dict[_Line, list[Figure]]:
    """Return for each label and data type the figures by batch of its mode with most batches, the faster of equals."""
    groups: dict[tuple[_Line, str], list[Figure]] = {}
    for one in figures:
        groups.setdefault(((one.label, one.dtype), one.mode), []).append(one)
    chosen: dict[_Line, list[Figure]] = {}
    for (line, _), group in groups.items():
        before = chosen.get(line, [])
        if (len(_batches(group)), _fastest(group)) > (len(before), _fastest(before)):
            chosen[line] = [_middle([one for one in group if one.batch == batch]) for batch in _batches(group)]
    return chosen


def _batches(figures: Sequence[Figure]) -> list[int]:
    return sorted({one.batch for one in figures})


def _middle(same: Sequence[Figure]) -> Figure:
    """Return the middle one of several measurements, the slower one of two."""
    return sorted(same, key=lambda one: one.images_per_second)[(len(same) - 1) // 2]


def _fastest(figures: Sequence[Figure]) -> float:
    return max((one.images_per_second for one in figures), default=0.0)


def _over_batch(
    axes: Axes, figures: Sequence[Figure], value: Callable[[Figure], float | None], caption: str, *, hollow: bool
) -> None:
    """Draw a line for each label and data type; where asked for, a disturbed measurement is a ``hollow`` marker."""
    colours, any_hollow = _colours(one.label for one in figures), False
    for (label, dtype), line in _lines(figures).items():
        seen = [(one, number) for one in line if (number := value(one)) is not None]
        marked = [place for place, (one, _) in enumerate(seen) if hollow and one.marks]
        batches, numbers = [one.batch for one, _ in seen], [number for _, number in seen]
        looks: dict[str, Any] = {"marker": _MARKERS.get(dtype, "o"), "markersize": 6, "color": colours[label]}
        told, style = f"{_plain(label)}, {dtype} {line[0].mode}", _LINES.get(dtype, "-")
        solid = [place for place in range(len(seen)) if place not in marked]
        axes.plot(batches, numbers, linestyle=style, label=told, markevery=solid, **looks)
        axes.plot(batches, numbers, linestyle="", fillstyle="none", markevery=marked, **looks)
        any_hollow = any_hollow or bool(marked)
    if any_hollow:
        axes.plot([], [], marker="o", fillstyle="none", linestyle="", color=_INK, label=_HOLLOW)
    axes.set_xscale("log", base=2)
    if len(_batches(figures)) <= _MOST_TICKS:
        axes.xaxis.set_major_locator(FixedLocator(_batches(figures)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda batch, _: f"{batch:g}")
    axes.margins(x=0.1, y=0.1)
    axes.set_xlabel("images a step")
    axes.set_ylabel(caption)
    axes.set_ylim(bottom=0)


def _curves(axes: Axes, figures: Sequence[Figure]) -> None:
    _over_batch(axes, figures, lambda one: one.images_per_second, "images/s", hollow=True)


def _memory(axes: Axes, figures: Sequence[Figure]) -> None:
    _over_batch(
        axes, figures, lambda one: one.peak_bytes / 1e9 if one.peak_bytes else None, "peak memory, GB", hollow=False
    )


def _bars(axes: Axes, figures: Sequence[Figure]) -> None:
    """Draw the best throughput of each data type and mode; a disturbed one is a hollow bar."""
    kinds = sorted({(one.dtype, one.mode) for one in figures}, key=_place_of_kind)
    colours = _colours(one.label for one in figures)
    width, any_hollow = 0.8 / len(colours), False
    for place, (label, colour) in enumerate(colours.items()):
        shift = width * (place - (len(colours) - 1) / 2)
        best = {
            index + shift: max(own, key=lambda one: one.images_per_second)
            for index, kind in enumerate(kinds)
            if (own := [one for one in figures if (one.label, (one.dtype, one.mode)) == (label, kind)])
        }
        any_hollow = any_hollow or any(one.marks for one in best.values())
        faces = ["none" if one.marks else colour for one in best.values()]
        bars = axes.bar(
            list(best), [one.images_per_second for one in best.values()], width, color=faces, edgecolor=colour,
        )  # fmt: skip
        axes.add_patch(_swatch(colour, _plain(label)))
        if len(colours) * len(kinds) <= _MOST_NUMBERED_BARS:
            upright = len(colours) * len(kinds) > _MOST_LEVEL_NUMBERS
            axes.bar_label(bars, fmt="{:,.4g}", fontsize="small", padding=2, rotation=90 if upright else 0)
    if any_hollow:
        axes.add_patch(_swatch("none", _HOLLOW))
    axes.set_xticks(range(len(kinds)), [f"{dtype}\n{mode}" for dtype, mode in kinds])
    axes.margins(y=0.25)
    axes.set_ylabel("images/s")


def _place_of_kind(kind: tuple[str, str]) -> tuple[int, str, str]:
    """Return what kinds are ordered by: number types as we measure them, then what a stranger's file may hold."""
    dtype, mode = kind
    return _DTYPES.index(dtype) if dtype in _DTYPES else len(_DTYPES), dtype, mode


def _swatch(colour: str, label: str) -> Rectangle:
    """Return a patch of no size, which stands for its colour in the legend."""
    return Rectangle((0, 0), 0, 0, facecolor=colour, edgecolor=_INK if colour == "none" else colour, label=label)


def _scaling(axes: Axes, compared: Comparison) -> None:
    most = max(one.replicas for one in compared.scaling)
    axes.plot([1, most], [1, most], color=_INK, linewidth=0.8, alpha=0.5, label="nothing lost")
    colours = _colours(one.label for one in compared.scaling)
    steps = dict.fromkeys((one.label, one.network, one.dtype, one.mode, one.batch) for one in compared.scaling)
    for place, step in enumerate(steps):
        of_step = sorted(
            (one.replicas, one.speed_up)
            for one in compared.scaling
            if (one.label, one.network, one.dtype, one.mode, one.batch) == step
        )
        counts, speed_ups = [1, *(count for count, _ in of_step)], [1.0, *(value for _, value in of_step)]
        label, network, dtype, mode, batch = step
        axes.plot(
            counts, speed_ups, marker="osD^v"[place % 5], color=colours[label],
            label=f"{_plain(label)}, {network} {dtype} {mode}, batch {batch}",
        )  # fmt: skip
    axes.set_xticks(range(1, most + 1))
    axes.set_xlabel("cards")
    axes.set_ylabel("speed-up")


def _prices(axes: Axes, ranking: Ranking) -> None:
    rows = ranking.rows[::-1]
    names, values = [_plain(row.label) for row in rows], [row.value for row in rows]
    bars = axes.barh(range(len(rows)), values, color=_COLOURS[0], height=0.45)
    axes.bar_label(bars, fmt="{:,.1f}", padding=3, fontsize="small")
    for place, name in enumerate(names):
        axes.text(0, place + 0.25, name, verticalalignment="bottom", fontsize="small")
    axes.set_yticks([])
    axes.set_ylim(-0.5, len(rows) - 0.2)
    axes.margins(x=0.15)
    axes.set_xlabel(_plain(ranking.unit))


def _plain(text: str) -> str:
    """Return a label as matplotlib shows it: not too long, and one that begins with an underscore it would hide."""
    shown = clean_label(text, _LONGEST_LABEL)
    return f"\u200b{shown}" if shown.startswith("_") else shown


def _colours(labels: Iterable[str]) -> dict[str, str]:
    """Return a colour for each label; more than we have of our own come from a palette of twenty."""
    names = list(dict.fromkeys(labels))
    palette = _COLOURS if len(names) <= len(_COLOURS) else [to_hex(mpl.colormaps["tab20"](at)) for at in range(20)]
    return {label: palette[place % len(palette)] for place, label in enumerate(names)}
