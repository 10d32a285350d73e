"""A comparison as pictures, drawn by matplotlib, which the extra ``report`` brings."""

import io
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure as Drawing

from agent.compare.model import Comparison, Figure, Picture, Ranking
from agent.model.text import clean_label

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
_LINES: Final = {"bf16": "-", "fp16": "--", "tf32": "-.", "fp32": ":"}
_DTYPES: Final = ("bf16", "fp16", "tf32", "fp32")
_INK: Final = "#010203"
"""Stands for the colour of the text around a picture."""
_SIZE_INCHES: Final = (5.4, 4.2)
_USUAL_ROWS, _ROW_INCHES = 6, 0.2
"""A picture whose legend has more rows is that much higher for each, so that its axes keep their size."""
_LONGEST_LABEL: Final = 60
_IMAGENET_SIZE: Final = 224
_STYLE: Final[dict[Any, Any]] = {
    "text.parse_math": False,
    "svg.fonttype": "none",
    "font.family": "sans-serif",
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
        yield _picture(f"precision-{network}", f"Best throughput by data type: {size}", partial(_bars, figures=alike))
        if any(one.peak_bytes for one in alike):
            yield _picture(f"memory-{network}", f"Peak memory over batch: {size}", partial(_memory, figures=alike))
    if compared.scaling:
        yield _picture("scaling", "Speed-up over cards", partial(_scaling, compared=compared))
    priced = next((one for one in compared.rankings if one.metric == "throughput per price"), None)
    if priced:
        yield _picture("price", f"{priced.unit}: {priced.subject}", partial(_prices, ranking=priced))


def _at_one_size(figures: Sequence[Figure]) -> list[Figure]:
    """Return the figures of 224 px, else of the image size with most of them."""
    sizes = Counter(one.size for one in figures)
    size = _IMAGENET_SIZE if _IMAGENET_SIZE in sizes else sizes.most_common(1)[0][0]
    return [one for one in figures if one.size == size]


def _picture(name: str, title: str, draw: Callable[[Axes], None]) -> Picture:
    drawing = Drawing(figsize=_SIZE_INCHES, layout="constrained")
    axes = drawing.add_subplot()
    draw(axes)
    axes.grid(alpha=0.25)
    handles, told = axes.get_legend_handles_labels()
    if told:
        columns = 1 + (max(map(len, told)) < 30)
        further = max(0, math.ceil(len(told) / columns) - _USUAL_ROWS)
        drawing.set_size_inches(_SIZE_INCHES[0], _SIZE_INCHES[1] + further * _ROW_INCHES)
        drawing.legend(handles, told, loc="outside lower left", ncols=columns, fontsize="small")
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


def _over_batch(axes: Axes, figures: Sequence[Figure], value: Callable[[Figure], float | None], caption: str) -> None:
    colours = _colours(one.label for one in figures)
    for (label, dtype), line in _lines(figures).items():
        seen = [(one.batch, number) for one in line if (number := value(one)) is not None]
        axes.plot(
            [batch for batch, _ in seen], [number for _, number in seen], marker="o", markersize=4,
            linestyle=_LINES.get(dtype, "-"), color=colours[label], label=f"{_plain(label)}, {dtype} {line[0].mode}",
        )  # fmt: skip
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda batch, _: f"{batch:g}")
    axes.set_xlabel("images a step")
    axes.set_ylabel(caption)
    axes.set_ylim(bottom=0)


def _curves(axes: Axes, figures: Sequence[Figure]) -> None:
    _over_batch(axes, figures, lambda one: one.images_per_second, "images/s")


def _memory(axes: Axes, figures: Sequence[Figure]) -> None:
    _over_batch(axes, figures, lambda one: one.peak_bytes / 1e9 if one.peak_bytes else None, "peak memory, GB")


def _bars(axes: Axes, figures: Sequence[Figure]) -> None:
    dtypes = [dtype for dtype in _DTYPES if any(one.dtype == dtype for one in figures)]
    colours = _colours(one.label for one in figures)
    width = 0.8 / len(colours)
    for place, (label, colour) in enumerate(colours.items()):
        shift = width * (place - (len(colours) - 1) / 2)
        best = [_fastest([one for one in figures if (one.label, one.dtype) == (label, dtype)]) for dtype in dtypes]
        measured = [(index + shift, value) for index, value in enumerate(best) if value]
        bars = axes.bar(
            [at for at, _ in measured], [value for _, value in measured], width, color=colour, label=_plain(label)
        )
        if len(colours) <= len(_COLOURS):
            axes.bar_label(bars, fmt="{:,.4g}", fontsize="small")
    axes.set_xticks(range(len(dtypes)), dtypes)
    axes.set_ylabel("images/s")


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
    bars = axes.barh(range(len(rows)), values, color=_COLOURS[0], height=0.6, tick_label=names)
    axes.bar_label(bars, fmt="{:,.1f}", padding=3, fontsize="small")
    axes.margins(x=0.12)
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
