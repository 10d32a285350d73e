"""A comparison as text: titled tables in the terminal and in Markdown, one flat CSV, JSON."""

import csv
import html
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
CSV_HEAD: Final = (
    "table", "label", "name", "value", "unit", "rank", "subject", "configuration", "marks", "source", "note",
)  # fmt: skip
_FORMULA: Final = ("=", "+", "-", "@")
"""What makes a spreadsheet compute a text that begins with it."""


class Table(msgspec.Struct, frozen=True):
    """A titled table of texts; ``notes`` stand under it."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    detail: bool = False
    """Whether it is too long to stand open."""
    folded: bool = False
    """Whether a page shows it closed at first."""
    grouped: bool = False
    """Whether a text in the first column heads its row and those below it."""


def tables(compared: Comparison) -> Iterator[Table]:
    """Yield a comparison's tables in reading order; empty ones are left out."""
    for table in (
        _cards(compared),
        *_rankings(compared.rankings),
        *_differences(compared),
        _headlines(compared),
        _scaling(compared),
        *_standings(compared.standings),
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
    """Return a comparison as one flat table with :data:`CSV_HEAD`, numbers in full.

    A text that a spreadsheet would compute has an apostrophe before it.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, CSV_HEAD, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in _flat(compared))
    return stream.getvalue()


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


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


def _rankings(rankings: Sequence[Ranking]) -> Iterator[Table]:
    """Yield one table for each metric and basis; rankings of several subjects stand below each other in it."""
    order = [(metric, basis) for metric in dict.fromkeys(one.metric for one in rankings) for basis in _BASES]
    for metric, basis in order:
        alike = [one for one in rankings if (one.metric, one.basis) == (metric, basis)]
        if alike:
            yield _ranking(alike)


def _ranking(alike: Sequence[Ranking]) -> Table:
    """Return the table of rankings that have metric and basis in common."""
    first, several = alike[0], len(alike) > 1
    with_column, marked = first.basis != "common", any(row.marks for one in alike for row in one.rows)
    column, who = ("source", "card") if first.basis == "quoted" else ("configuration", "result")
    head = (
        *(("what",) if several else ()), "rank", who, first.unit,
        *((column,) if with_column else ()), *(("marks",) if marked else ()),
    )  # fmt: skip
    rows = tuple(
        (
            *((one.subject if row is one.rows[0] else "",) if several else ()), str(row.rank), row.label,
            _number(row.value), *((row.configuration,) if with_column else ()),
            *((", ".join(row.marks),) if marked else ()),
        )
        for one in alike
        for row in one.rows
    )  # fmt: skip
    title = f"Rank by {first.metric}, {first.unit}: {_BASES[first.basis] if several else first.subject}"
    return Table(title, head, rows, tuple(_ranking_notes(alike)), grouped=several)


def _ranking_notes(alike: Sequence[Ranking]) -> Iterator[str]:
    first, several = alike[0], len(alike) > 1
    order = "the higher the better" if first.higher_is_better else "the lower the better"
    own = [one.subject for one in alike if one.is_own_best]
    all_own = ", and each one's own best" if len(own) == len(alike) else ""
    yield f"{_BASES[first.basis].capitalize()}{all_own}; {order}."
    if own and not all_own:
        yield f"Each one's own best too: {'; '.join(own)}."
    for one in alike:
        if one.left_out:
            yield f"Left out{f' of {one.subject}' if several else ''}: {'; '.join(one.left_out)}."


def _differences(compared: Comparison) -> Iterator[Table]:
    for pair in dict.fromkeys((one.left, one.right) for one in compared.differences):
        rows = tuple(
            (
                one.name, f"{one.percent:+.2f} %", quantity_text(one.left_value, one.unit),
                quantity_text(one.right_value, one.unit), _remark(one),
            )
            for one in compared.differences
            if (one.left, one.right) == pair
        )  # fmt: skip
        yield Table(
            f"The same hardware twice: {pair[0]} and {pair[1]}", ("figure", "change", "first", "second", ""), rows
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
    return Table("Headline figures", ("figure", *compared.results), rows, folded=True)


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


def _standings(standings: Sequence[Standing]) -> Iterator[Table]:
    """Yield one table for each quantity and number type: what was measured, then what was published."""
    kinds = dict.fromkeys((one.quantity, one.precision) for one in standings)
    for place, kind in enumerate(kinds):
        alike = [one for one in standings if (one.quantity, one.precision) == kind]
        labels = tuple(dict.fromkeys(one.label for one in alike))
        measured = {one.label: f"{quantity_text(one.measured, one.unit)} ({one.measured_at})" for one in alike}
        rows: dict[tuple[str, ...], dict[str, str]] = {}
        for one in sorted(alike, key=lambda one: -one.published_high):
            source = f"{one.source}. {one.note}" if one.note else one.source
            published = one.card, range_text(one.published_low, one.published_high, one.unit), one.batch, source
            rows.setdefault(published, {})[one.label] = f"{_times(one)}{', same model' if one.same_model else ''}"
        yield Table(
            f"Beside published figures: {' '.join(kind)}, as measured / published",
            ("published for", "published", *labels, "batch", "source"),
            (
                ("measured here", "", *(measured[label] for label in labels), "", ""),
                *(
                    (card, told, *(times.get(label, "") for label in labels), batch, source)
                    for (card, told, batch, source), times in rows.items()
                ),
            ),
            () if place else (METHODS_DIFFER,),
            folded=True,
        )


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
    return Table("All training figures", head, rows, detail=True, folded=True)


def configuration(one: Figure) -> str:
    """Return in words how a figure was measured."""
    parts = [one.network, one.dtype, one.mode, f"{one.size} px", one.variant, f"batch {one.batch}"]
    parts += [f"on {one.replicas} cards"] if one.replicas > 1 else []
    parts += [f"{one.accumulate} batches accumulated"] if one.accumulate > 1 else []
    parts += [f"limit {one.memory_limit_bytes / 2**30:g} GiB"] if one.memory_limit_bytes else []
    return " ".join(filter(None, parts))


def _flat(compared: Comparison) -> Iterator[Mapping[str, object]]:
    for caution in compared.cautions:
        about, note = " and ".join(caution.about), f"{caution.detail}; {caution.effect}"
        yield {"table": "caution", "label": about, "name": caution.topic, "note": note}
    for note in compared.notes:
        yield {"table": "note", "note": note}
    yield from _flat_rankings(compared.rankings)
    for one in compared.differences:
        about, marks = f"{one.left} and {one.right}", "above 1 %" if one.large else ""
        yield {
            "table": "difference", "label": about, "name": one.name, "value": one.percent, "unit": "percent",
            "marks": marks,
        }  # fmt: skip
    for headline in compared.headlines:
        for label, value in zip(compared.results, headline.values, strict=True):
            if value is not None:
                yield {
                    "table": "headline", "label": label, "name": headline.name, "value": value, "unit": headline.unit
                }  # fmt: skip
    for spread in compared.scaling:
        at = f"{spread.network} {spread.dtype} {spread.mode} batch {spread.batch} on {spread.replicas} cards"
        yield {
            "table": "scaling", "label": spread.label, "name": "efficiency", "value": spread.efficiency,
            "configuration": at,
        }  # fmt: skip
    yield from _flat_standings(compared.standings)
    yield from _flat_figures(compared.figures)


def _flat_rankings(rankings: Iterable[Ranking]) -> Iterator[Mapping[str, object]]:
    for ranking in rankings:
        for row in ranking.rows:
            own, quoted = ranking.basis == "own_best", ranking.basis == "quoted"
            yield {
                "table": "ranking", "label": row.label, "name": ranking.metric, "value": row.value,
                "unit": ranking.unit, "rank": row.rank, "subject": ranking.subject,
                "configuration": row.configuration if own else "", "marks": "; ".join(row.marks),
                "source": row.configuration if quoted else "",
                "note": "; ".join((_BASES[ranking.basis], *ranking.left_out)),
            }  # fmt: skip


def _flat_standings(standings: Iterable[Standing]) -> Iterator[Mapping[str, object]]:
    """Yield each published figure once, whoever stands beside it."""
    seen = dict.fromkeys(
        (one.card, f"{one.quantity} {one.precision}", value, one.unit, one.batch, one.source, one.note)
        for one in standings
        for value in (one.published_low, one.published_high)
    )
    for card, name, value, unit, batch, source, note in seen:
        yield {
            "table": "published", "label": card, "name": name, "value": value, "unit": unit,
            "configuration": f"batch {batch}" if batch else "", "source": source,
            "note": f"{note} {METHODS_DIFFER}".strip(),
        }  # fmt: skip


def _flat_figures(figures: Iterable[Figure]) -> Iterator[Mapping[str, object]]:
    for one in figures:
        for name, value, unit in (
            ("throughput", one.images_per_second, "images/s"),
            ("peak memory", one.peak_bytes, "byte"),
            ("power", one.watts, "W"),
            ("energy", one.joules_per_image, "J/image"),
        ):
            if value is not None:
                yield {
                    "table": "figure", "label": one.label, "name": name, "value": value, "unit": unit,
                    "configuration": configuration(one), "marks": "; ".join(one.marks),
                }  # fmt: skip


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
