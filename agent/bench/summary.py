"""A result for people: tables of what was measured, and what follows from it."""

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Final

import msgspec
from rich.console import Console
from rich.table import Table

from agent.bench import analysis
from agent.bench.marks import MEANING, marks_text
from agent.bench.model import BenchResult, Machine
from agent.bench.points import Point, points
from agent.model.next_action import next_action
from agent.model.probe import ProbeRecord, ProbeResult
from agent.probes.show import table, value_text

_GB: Final = 1e9
_GIB: Final = float(1 << 30)
_MARKS: Final = "marks"
"""Head of the last column of a table whose figures may have been disturbed."""
_FINDINGS: Final = ("oom", "unsupported")
"""Reasons without a value that nobody need cure."""


class Section(msgspec.Struct, frozen=True):
    """One table, or lines where it has no head."""

    title: str
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


def show(result: BenchResult, console: Console) -> None:
    """Print a result: framed tables on a terminal, plain aligned columns elsewhere."""
    for section in sections(result):
        console.print()
        console.print(section.title, style="bold", markup=False, highlight=False, soft_wrap=True)
        head, rows = _without_empty_columns(section)
        if rows and console.is_terminal:
            framed = Table()
            for name in head:
                framed.add_column(name, overflow="fold")
            for row in rows:
                framed.add_row(*row)
            console.print(framed, markup=False)
        elif rows:
            console.print(table(head, rows), markup=False, highlight=False, soft_wrap=True)
        for note in section.notes:
            console.print(note, markup=False, highlight=False, soft_wrap=True)


def _without_empty_columns(section: Section) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    filled = [any(cells) for cells in zip(*section.rows, strict=True)]
    return tuple(compress(section.head, filled)), [tuple(compress(row, filled)) for row in section.rows]


def sections(result: BenchResult) -> Iterator[Section]:
    """Yield the parts of the summary that have something to say."""
    measured = points(result)
    parts = (
        _operations(result),
        _curves(result, measured),
        _further(measured),
        _scaling(result, measured),
        _single_steps(measured),
        _memory(result),
        _article(measured),
        _failures(result),
    )
    yield Section(
        f"{result.label} ({result.extent}{'' if result.complete else ', not complete'})", notes=_where(result)
    )
    yield from (part for part in parts if part.rows or part.notes)
    if any(part.head[-1:] == (_MARKS,) and any(row[-1] for row in part.rows) for part in parts):
        yield Section("Marks", notes=(MEANING,))


def _where(result: BenchResult) -> tuple[str, ...]:
    machine = result.machine
    software = [
        f"{name} {version}"
        for name, version in (
            ("TensorFlow", machine.tensorflow),
            ("CUDA", machine.cuda),
            ("cuDNN", machine.cudnn),
            ("driver", machine.driver),
            ("Python", machine.python),
        )
        if version
    ]
    host = [
        f"{machine.cpus} CPUs ({machine.cpu or 'model unknown'})",
        f"{machine.memory_bytes / _GB:.0f} GB" if machine.memory_bytes else "",
        f"hypervisor {machine.hypervisor}" if machine.hypervisor else "",
        machine.container,
    ]
    limit = f"every step under a limit of {result.memory_limit_bytes / _GIB:g} GiB" if result.memory_limit_bytes else ""
    return tuple(filter(None, (", ".join(software), ", ".join(filter(None, host)), limit, _card_line(machine))))


def _card_line(machine: Machine) -> str:
    if not machine.cards:
        return ""
    card = machine.cards[0]
    memory = f"{card.memory_bytes / _GB:.0f} GB" if card.memory_bytes else ""
    limit = f"{card.power_limit_watts:.0f} W" if card.power_limit_watts else ""
    parts = [f"{len(machine.cards)} x {card.name}", memory, limit, "MIG" if card.mig_enabled else ""]
    return ", ".join(filter(None, parts))


def _operations(result: BenchResult) -> Section:
    rows = []
    for _, record in _records(result):
        answer = record.result
        if answer.status == "ok" and answer.probe in ("matmul", "bandwidth", "pipeline"):
            name = " ".join(filter(None, (answer.probe, answer.variant, answer.dtype)))
            rows.append((name, _shape(answer), value_text(answer), marks_text([record])))
    return Section("Operations", ("measured", "shape", "value", _MARKS), tuple(rows))


def _shape(answer: ProbeResult) -> str:
    """Return what was worked on; arrays whose bandwidth is measured have items of four bytes."""
    return f"{answer.shape} x 4 B" if answer.probe == "bandwidth" else answer.shape


def _curves(result: BenchResult, measured: Sequence[Point]) -> Section:
    memory_bytes = analysis.memory_of(result)
    rows, notes = [], []
    for curve in analysis.curves(measured):
        limit_bytes = curve.setting.memory_limit_bytes
        advice = analysis.recommended(curve, float(limit_bytes) if limit_bytes else memory_bytes)
        at, best = advice.point, curve.best
        rows.append(
            (
                str(curve.setting), f"{best.images_per_second:,.1f}", str(best.batch), str(advice.knee.batch),
                str(at.batch), str(curve.largest.batch), _number(at.peak_bytes, 1 / _GB, " GB"),
                _number(analysis.images_per_second_per_gb(at)), _number(analysis.images_per_second_per_watt(at)),
                _number(at.joules_per_image, 1.0, " J"), _marks_of(best, advice.knee, at),
            )
        )  # fmt: skip
        if advice.why not in ("the knee", "the knee; memory was not read"):
            notes.append(f"{curve.setting}: recommended batch {at.batch}: {advice.why}")
    head = (
        "training", "img/s", "at batch", "knee", "recommended", "largest measured", "peak", "img/s/GB", "img/s/W",
        "energy/image", _MARKS,
    )  # fmt: skip
    if rows:
        notes.append(
            "knee: smallest batch with 95 % of the best; peak, per GB, per W and energy at the recommended one"
        )
    return Section("Training on one device", head, tuple(rows), tuple(notes))


def _further(measured: Sequence[Point]) -> Section:
    rows = [
        (_name(point), f"{point.batch} x {point.accumulate}", f"{point.images_per_second:,.1f}", _marks_of(point))
        for point in measured
        if point.accumulate > 1
    ]
    return Section("Accumulated gradients", ("training", "batch", "img/s", _MARKS), tuple(rows))


def _scaling(result: BenchResult, measured: Sequence[Point]) -> Section:
    rows = [
        (
            _name(spread.many), str(spread.many.batch), str(spread.many.replicas),
            f"{spread.many.images_per_second:,.1f}", f"{spread.speed_up:.2f}", f"{spread.efficiency:.3f}",
            _marks_of(spread.many, *spread.alone),
        )
        for spread in analysis.scaling(measured)
    ]  # fmt: skip
    head = ("training", "batch a card", "cards", "img/s", "speed-up", "efficiency", _MARKS)
    return Section("Scaling", head, tuple(rows), result.machine.topology if rows else ())


def _single_steps(measured: Sequence[Point]) -> Section:
    rows = []
    for point in measured:
        cold, even = analysis.cold_start(point), analysis.jitter(point)
        if cold is None or (even is None and point.mode == "graph"):
            continue
        jitter = (
            (f"{1e3 * even.median_s:.2f} ms", f"{even.mad_s / even.median_s:.2%}", f"{even.p99_over_median:.2f}")
            if even
            else ("", "", "")
        )
        name = f"{_name(point)} batch {point.batch}"
        steady = f"{1e3 * cold.steady_step_s:.2f} ms"
        rows.append((name, f"{cold.first_step_s:.1f} s", steady, f"{cold.steps_lost:,.0f}", *jitter, _marks_of(point)))
    head = ("training", "first step", "steady step", "worth steps", "alone: median", "MAD", "p99/median", _MARKS)
    return Section("First step and jitter", head, tuple(rows))


def _memory(result: BenchResult) -> Section:
    rows = [
        (
            use.step, use.dtype, use.shape, _number(use.peak_bytes, 1 / _GB, " GB"),
            _number(use.device_used_bytes, 1 / _GB, " GB"), _number(use.optimizer_added_bytes, 1 / _GB, " GB"),
        )
        for use in analysis.memory_uses(result)
    ]  # fmt: skip
    notes = [f"{saving.name}: {saving.share:.0%} saved" for saving in analysis.savings(result)]
    head = ("step", "dtype", "shape", "peak", "card in use", "Adam adds")
    return Section("Memory", head, tuple(rows), tuple(notes))


def _article(measured: Sequence[Point]) -> Section:
    notes = []
    for theirs in measured:
        ours = [point for point in measured if not point.variant and _circumstances(point) == _circumstances(theirs)]
        if theirs.variant == "article" and ours:
            mine = ours[-1].images_per_second
            notes.append(
                f"{_name(theirs)} batch {theirs.batch}: {theirs.images_per_second:,.4g} img/s against {mine:,.4g} of "
                f"our step, a factor of {mine / theirs.images_per_second:.2f}, since {_why(theirs)}."
            )
    return Section("The way of the article: a Keras model in an eager loop", notes=tuple(notes))


def _why(theirs: Point) -> str:
    """Return what makes the article's step slower, by its version of Keras."""
    keras = theirs.record.result.notes.get("keras", "")
    host = "Python dispatches each operation of each step by itself"
    slow = "Keras 3 normalises batches by several operations where TensorFlow has one fused kernel"
    return f"{host}, and {slow}" if keras.startswith("3.") and theirs.network == "resnet50" else host


def _failures(result: BenchResult) -> Section:
    rows, actions = [], list[str]()
    for step, record in _records(result):
        answer = record.result
        if answer.status == "ok":
            continue
        what = " ".join(filter(None, (answer.probe, answer.variant, answer.dtype, answer.shape)))
        rows.append((step, what, f"{answer.status}: {answer.reason}", answer.detail[:80]))
        if answer.reason.partition(":")[0] not in _FINDINGS:
            actions.append(f"-> {next_action(record)}")
    head = ("step", "measurement", "why", "detail")
    return Section("Without a value", head, tuple(rows), tuple(dict.fromkeys(actions)))


def _marks_of(*measured: Point) -> str:
    return marks_text(point.record for point in measured)


def _records(result: BenchResult) -> Iterator[tuple[str, ProbeRecord]]:
    for step in result.steps:
        for record in step.records:
            yield step.name, record


def _circumstances(point: Point) -> tuple[str, str, int, int, int]:
    return point.network, point.dtype, point.size, point.batch, point.replicas


def _name(point: Point) -> str:
    return str(analysis.setting_of(point))


def _number(value: float | None, scale: float = 1.0, unit: str = "") -> str:
    return "" if value is None else f"{value * scale:,.4g}{unit}"
