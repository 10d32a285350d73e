"""A comparison as text: titled tables in the terminal and in Markdown, one flat CSV, JSON."""

import csv
import html
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from agent.compare.model import Comparison, Difference, Figure, Ranking, Standing
from agent.compare.published import range_text
from agent.probes.show import quantity_text

METHODS_DIFFER: Final = (
    "Published figures come from other programs, inputs and versions: methods differ, so they are set beside the "
    "measured ones and never ranked with them."
)
_BASES: Final = {
    "common": "the best configuration that all have",
    "own_best": "each card's own best configuration",
    "quoted": "published throughputs, not measured here",
}
_FILE_WIDTH: Final = 100_000
"""Columns where no terminal bounds them: nothing is wrapped."""
_NUMBER: Final = re.compile(r"([+-]?[\d,]+(\.\d+)?(e[+-]\d+)?( %)?)?")
_MARKUP: Final = re.compile(r"[\\`*_\[\]|~]")
"""What Markdown would take for emphasis, code, a link, a picture or the end of a cell."""
CSV_HEAD: Final = ("table", "label", "name", "value", "unit", "rank", "configuration", "marks", "note")


class Table(msgspec.Struct, frozen=True):
    """A titled table of texts; ``notes`` stand under it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    detail: bool = False
    """Whether it is too long to stand open."""


def tables(compared: Comparison) -> Iterator[Table]:
    """Yield a comparison's tables in reading order; empty ones are left out."""
    for table in (
        _cards(compared),
        *(_ranking(ranking) for ranking in compared.rankings),
        *_differences(compared),
        _headlines(compared),
        _scaling(compared),
        *_standings(compared),
        _figures(compared),
    ):
        if table.rows:
            yield table


def terminal(compared: Comparison, console: Console) -> None:
    """Print a comparison: cautions first, then the tables that are not details."""
    for heading, lines in _lists(compared):
        console.print(Text(heading, style="bold"))
        listed = RichTable.grid(padding=(0, 1))
        for line in lines:
            listed.add_row(Text("  !"), Text(line))
        console.print(listed)
        console.print()
    for table in tables(compared):
        if table.detail:
            continue
        console.print(Text(table.title, style="bold"))
        shown = RichTable(show_edge=False)
        for place, name in enumerate(table.head):
            shown.add_column(Text(name), justify="right" if is_numeric(table, place) else "left", overflow="fold")
        for row in table.rows:
            shown.add_row(*map(Text, row))
        console.print(shown)
        for note in table.notes:
            console.print(Text(f"  {note}"))
        console.print()


def plain_text(compared: Comparison) -> str:
    """Return what a terminal shows, without colours."""
    stream = io.StringIO()
    terminal(compared, Console(file=stream, width=_FILE_WIDTH, no_color=True, force_terminal=False))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def markdown(compared: Comparison) -> str:
    """Return a comparison in Markdown; what labels hold is shown, never obeyed."""
    parts = ["# Comparison\n"]
    for heading, lines in _lists(compared):
        parts += [f"## {heading}\n", *(f"* {_escaped(line)}" for line in lines), ""]
    for table in tables(compared):
        if not table.detail:
            rows = (table.head, tuple("---" for _ in table.head), *table.rows)
            parts += [f"## {_escaped(table.title)}\n"]
            parts += ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
            parts += ["", *(f"{_escaped(note)}\n" for note in table.notes)]
    return "\n".join(parts).rstrip() + "\n"


def as_csv(compared: Comparison) -> str:
    """Return a comparison as one flat table with :data:`CSV_HEAD`, numbers in full."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_HEAD)
    writer.writerows(_flat(compared))
    return stream.getvalue()


def as_json(compared: Comparison) -> str:
    """Return a comparison as JSON, in the form of :class:`~agent.compare.model.Comparison`."""
    return msgspec.json.format(msgspec.json.encode(compared), indent=1).decode() + "\n"


def _lists(compared: Comparison) -> Iterator[tuple[str, Sequence[str]]]:
    if compared.cautions:
        yield "Before you compare", [caution.line for caution in compared.cautions]
    if compared.notes:
        yield "Notes", compared.notes


def _cards(compared: Comparison) -> Table:
    priced = any(card.price is not None for card in compared.cards)
    head = ("result", "card", "device", "TensorFlow", "driver")
    rows = tuple(
        (
            card.label, card.card, card.device, card.tensorflow, card.driver,
            *((_number(card.price),) if priced else ()),
        )
        for card in compared.cards
    )  # fmt: skip
    return Table("Results", (*head, f"price, {compared.currency}") if priced else head, rows)


def _ranking(ranking: Ranking) -> Table:
    same = ranking.basis == "common"
    marked = any(row.marks for row in ranking.rows)
    column = "source" if ranking.basis == "quoted" else "configuration"
    head = ("rank", "card", ranking.unit, *(() if same else (column,)), *(("marks",) if marked else ()))
    rows = tuple(
        (
            str(row.rank), row.label, _number(row.value), *(() if same else (row.configuration,)),
            *((", ".join(row.marks),) if marked else ()),
        )
        for row in ranking.rows
    )  # fmt: skip
    order = "the higher the better" if ranking.higher_is_better else "the lower the better"
    own = ", and each one's own best" if ranking.is_own_best else ""
    notes = [f"{_BASES[ranking.basis].capitalize()}{own}; {order}."]
    notes += [f"Left out: {'; '.join(ranking.left_out)}."] if ranking.left_out else []
    return Table(f"Rank by {ranking.metric}, {ranking.unit}: {ranking.subject}", head, rows, tuple(notes))


def _differences(compared: Comparison) -> Iterator[Table]:
    for pair in dict.fromkeys((one.left, one.right) for one in compared.differences):
        rows = tuple(
            (
                one.name, quantity_text(one.left_value, one.unit), quantity_text(one.right_value, one.unit),
                f"{one.percent:+.2f} %", _remark(one),
            )
            for one in compared.differences
            if (one.left, one.right) == pair
        )  # fmt: skip
        yield Table(
            f"The same hardware twice: {pair[0]} and {pair[1]}", ("figure", "first", "second", "change", ""), rows
        )


def _remark(one: Difference) -> str:
    if not one.large:
        return ""
    return "above 1 %, though it should repeat" if one.repeatable else "above 1 %"


def _headlines(compared: Comparison) -> Table:
    rows = tuple(
        (one.name, *("" if value is None else quantity_text(value, one.unit) for value in one.values))
        for one in compared.headlines
    )
    return Table("Headline figures", ("figure", *compared.results), rows)


def _scaling(compared: Comparison) -> Table:
    head = ("result", "step", "batch a card", "cards", "images/s", "speed-up", "efficiency")
    rows = tuple(
        (
            one.label, f"{one.network} {one.dtype} {one.mode}", str(one.batch), str(one.replicas),
            _number(one.images_per_second), f"{one.speed_up:.2f}", f"{one.efficiency:.3f}",
        )
        for one in compared.scaling
    )  # fmt: skip
    return Table("Scaling over cards", head, rows)


def _standings(compared: Comparison) -> Iterator[Table]:
    head = ("published for", "published", "measured / published", "batch", "source")
    groups: dict[str, list[Standing]] = {}
    for one in compared.standings:
        measured = quantity_text(one.measured, one.unit)
        groups.setdefault(f"{one.label}, {one.quantity} {one.precision}, measured {measured}", []).append(one)
    for title, group in groups.items():
        rows = tuple(
            (
                f"{one.card} (same model)" if one.same_model else one.card,
                range_text(one.published_low, one.published_high, one.unit), _times(one), one.batch,
                f"{one.source}. {one.note}" if one.note else one.source,
            )
            for one in group
        )  # fmt: skip
        yield Table(f"Beside published figures: {title}", head, rows, (METHODS_DIFFER,))


def _figures(compared: Comparison) -> Table:
    head = ("result", "configuration", "images/s", "peak memory, GB", "W", "J/image", "marks")
    rows = tuple(
        (
            one.label, configuration(one), _number(one.images_per_second),
            "" if one.peak_bytes is None else f"{one.peak_bytes / 1e9:.2f}",
            _number(one.watts), _number(one.joules_per_image), ", ".join(one.marks),
        )
        for one in compared.figures
    )  # fmt: skip
    return Table("All training figures", head, rows, detail=True)


def configuration(one: Figure) -> str:
    """Return in words how a figure was measured."""
    parts = [one.network, one.dtype, one.mode, f"{one.size} px", one.variant, f"batch {one.batch}"]
    parts += [f"on {one.replicas} cards"] if one.replicas > 1 else []
    parts += [f"{one.accumulate} batches accumulated"] if one.accumulate > 1 else []
    parts += [f"limit {one.memory_limit_bytes / 2**30:g} GiB"] if one.memory_limit_bytes else []
    return " ".join(filter(None, parts))


def _flat(compared: Comparison) -> Iterator[Sequence[object]]:
    for caution in compared.cautions:
        about = " and ".join(caution.about)
        yield "caution", about, caution.topic, "", "", "", "", "", f"{caution.detail}; {caution.effect}"
    for note in compared.notes:
        yield "note", "", "", "", "", "", "", "", note
    yield from _flat_rankings(compared.rankings)
    for one in compared.differences:
        mark = "above 1 %" if one.large else ""
        yield "difference", f"{one.left} and {one.right}", one.name, one.percent, "percent", "", "", mark, ""
    for headline in compared.headlines:
        for label, value in zip(compared.results, headline.values, strict=True):
            if value is not None:
                yield "headline", label, headline.name, value, headline.unit, "", "", "", ""
    for spread in compared.scaling:
        at = f"{spread.network} {spread.dtype} {spread.mode} batch {spread.batch} on {spread.replicas} cards"
        yield "scaling", spread.label, "efficiency", spread.efficiency, "", "", at, "", ""
    for beside in compared.standings:
        name = f"{beside.quantity} {beside.precision}"
        for value in dict.fromkeys((beside.published_low, beside.published_high)):
            note = f"{beside.source}. {beside.note} {METHODS_DIFFER}"
            yield "published", beside.card, name, value, beside.unit, "", beside.batch, "", note
    yield from _flat_figures(compared.figures)


def _flat_rankings(rankings: Iterable[Ranking]) -> Iterator[Sequence[object]]:
    for ranking in rankings:
        note = "; ".join((_BASES[ranking.basis], *ranking.left_out))
        for row in ranking.rows:
            at = f"{ranking.subject}: {row.configuration}"
            marks = "; ".join(row.marks)
            yield "ranking", row.label, ranking.metric, row.value, ranking.unit, row.rank, at, marks, note


def _flat_figures(figures: Iterable[Figure]) -> Iterator[Sequence[object]]:
    for one in figures:
        for name, value, unit in (
            ("throughput", one.images_per_second, "images/s"),
            ("peak memory", one.peak_bytes, "byte"),
            ("power", one.watts, "W"),
            ("energy", one.joules_per_image, "J/image"),
        ):
            if value is not None:
                yield "figure", one.label, name, value, unit, "", configuration(one), "; ".join(one.marks), ""


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 10:
        return f"{value:,.1f}"
    return f"{value:.3f}" if value >= 0.1 else f"{value:.3g}"


def _times(one: Standing) -> str:
    low, high = (f"{times:.2f}" for times in one.times)
    return low if low == high else f"{low} to {high}"


def is_numeric(table: Table, place: int) -> bool:
    """Return whether a column holds numbers only, so that it is set flush right."""
    return all(_NUMBER.fullmatch(row[place]) for row in table.rows)


def _escaped(text: str) -> str:
    return _MARKUP.sub(r"\\\g<0>", html.escape(text, quote=False)).replace("\n", " ")
