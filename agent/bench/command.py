"""``heatsoak bench``: figures of one machine that can be compared with those of another."""

import contextlib
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Final, Literal

import click
import msgspec
from rich.console import Console

from agent import logs, usage
from agent.bench import smoke, tf_cnn
from agent.bench.environment import default_label, differences, machine_of, masked, with_software
from agent.bench.model import SCHEMA_VERSION, BenchResult, Extent, Step
from agent.bench.order import DEFAULT_FILE, Format, Order, begun, label_text, settled
from agent.bench.plan import PlannedStep, plan
from agent.bench.progress import Reporter
from agent.bench.runner import Lab, OtherMachineError, StoppedError, pending, run_plan
from agent.bench.store import held, load, save
from agent.bench.summary import show
from agent.bench.workplace import workplace
from agent.clock import SystemClock
from agent.config.settings import Settings
from agent.errors import EXIT_BAD_CARD, EXIT_OK, EXIT_UNKNOWN_CARD, ConfigError
from agent.interrupt import interruptible, signals_noted, watched
from agent.invocation import Invocation
from agent.model.next_action import next_action
from agent.model.plain import plain
from agent.model.probe import DeviceKind, ProbeRecord
from agent.model.snapshot import Card
from agent.nvml.client import ReaderClient
from agent.probes.job import Setup
from agent.probes.quick import side_by_side
from agent.probes.session import ProbeSession
from agent.size import limit_text, size_bytes

READY_S: Final = 10.0
"""How long to wait for the driver and for cards to be seen at rest."""


@click.command()
@click.option("--quick", is_flag=True, help="About four minutes on a fast card; the default.")
@click.option("--full", is_flag=True, help="Every precision, batch and resolution: about half an hour.")
@click.option("--smoke", "smoking", is_flag=True, help="Only: does TensorFlow really use this card? Under a minute.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help=f"Result file. Default: {DEFAULT_FILE}; none with --smoke.")  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with the result file where it stopped.")
@click.option("--gpu", "gpus", multiple=True, help="Index or UUID of a card; may be repeated. Default: all cards.")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), help="Default: the file's, else probe.device.")
@click.option("--label", type=label_text, default="", metavar="TEXT",
              help="What to call this result. Default: the card's name and TensorFlow's version.")  # fmt: skip
@click.option("--memory-limit", "memory_limit_bytes", type=size_bytes, default=None, metavar="SIZE",
              help="Play a smaller card, as 16GiB.")  # fmt: skip
@click.option(
    "--method", type=click.Choice(["article"]), help="Measure a Keras model in an eager loop beside our step."
)
@click.option("--format", "form", type=click.Choice(["table", "json", "tf_cnn"]), default="table", show_default=True)
@click.option("--force", is_flag=True, help="Measure on cards that are in use too.")
@click.pass_context
def bench(
    context: click.Context,
    *,
    quick: bool,
    full: bool,
    smoking: bool,
    output: Path | None,
    resume: bool,
    gpus: tuple[str, ...],
    device: DeviceKind | None,
    label: str,
    memory_limit_bytes: int | None,
    method: str | None,
    form: Format,
    force: bool,
) -> int:
    """Measure a card, or the CPU, so that the figures compare across machines, images and clouds.

    The result file is saved after every step; --resume goes on with it. Exit codes: 0 done, or with --smoke: yes;
    10 a card computed wrong or was lost; 11 a card could not be used, the cause is said; 2 usage, or a file that is
    there already or belongs to another machine; 130 and 143 interrupted.

    \f
    Raises:
        click.UsageError: More than one of --quick, --full and --smoke was given, or an option without effect.
    """  # noqa: D301 - click ends its help at the form feed
    if quick + full + smoking > 1:
        given = " ".join(name for name, on in (("--quick", quick), ("--full", full), ("--smoke", smoking)) if on)
        raise click.UsageError(f"{given}: give one of them")
    if smoking:
        usage.refuse(context, ("resume", "method"), "beside --smoke, which always measures the same")
    extent: Literal["quick", "full"] | None = "full" if full else "quick" if quick else None
    invocation: Invocation = context.obj
    settings = invocation.settings()
    logs.configure(msgspec.structs.replace(settings.log, level="critical"), invocation.environ, sys.stderr)
    path = output if smoking else output or DEFAULT_FILE
    if path is None and form != "json":
        usage.refuse(context, ("label",), "beside --smoke without -o")
    with contextlib.nullcontext() if path is None else held(path):
        stored = None if path is None else _stored(path, resume=resume, smoking=smoking)
        was = begun(stored)
        order = Order(
            output=path, extent=settled("extent", extent, was.extent, "quick"),
            device=settled("device", device, was.device, settings.probe.device), gpus=gpus, label=label,
            memory_limit_bytes=settled("memory limit", memory_limit_bytes, was.memory_limit_bytes, 0, limit_text),
            article=method == "article", force=force, form=form,
        )  # fmt: skip
        if order.device == "cpu":
            usage.refuse(context, ("gpus", "memory_limit_bytes", "force"), "on the CPU (--device, probe.device, file)")
        return _smoke(invocation, settings, order) if smoking else _bench(invocation, settings, order, stored)


def _bench(invocation: Invocation, settings: Settings, order: Order, stored: BenchResult | None) -> int:
    with _session(settings, order.device) as session:
        cards = _cards(session, order)
        if order.device == "gpu" and not cards:
            raise ConfigError([_no_card(session)])
        result = _begun(invocation, settings, session, cards, order, stored)
        steps = plan(
            order.extent, order.device, len(cards), article=order.article, data_dir=settings.pipeline.data_dir,
            memory_limit_bytes=order.memory_limit_bytes,
        )  # fmt: skip
        lab = Lab(
            session, cards, SystemClock(), force=order.force, memory_limit_bytes=order.memory_limit_bytes
        )  # fmt: skip
        with _written(order.path):
            code, result = _carry_out(result, steps, lab, order)
    if result.complete:
        _print(result, order.form)
    return code


def _stored(path: Path, *, resume: bool, smoking: bool) -> BenchResult | None:
    """Return the result to go on with; None where a new one is to be made."""
    if not path.exists():
        return None
    if not resume:
        ways = "name another file with -o" + ("" if smoking else ", or go on with it by --resume")
        raise ConfigError([f"{path}: is there already; {ways}"])
    return load(path)


def _begun(
    invocation: Invocation,
    settings: Settings,
    session: ProbeSession,
    cards: tuple[Card, ...],
    order: Order,
    stored: BenchResult | None,
) -> BenchResult:
    """Return the result to add steps to: a new one, or the stored one where it was made here."""
    machine = machine_of(order.device, cards, session.nvml, settings, invocation.environ)
    if stored is None:
        return BenchResult(
            schema_version=SCHEMA_VERSION, heatsoak=_version(), label=order.label, extent=order.extent,
            started_wall_s=SystemClock().wall_s(), machine=machine, memory_limit_bytes=order.memory_limit_bytes,
        )  # fmt: skip
    faults = differences(stored, machine)
    if stored.heatsoak != _version():
        faults.append(f"heatsoak: {stored.heatsoak} in the file, {_version()} now")
    if faults:
        raise OtherMachineError("\n".join(f"{order.path}: {fault}" for fault in faults))
    return msgspec.structs.replace(stored, label=order.label or stored.label, complete=False)


def _carry_out(result: BenchResult, steps: tuple[PlannedStep, ...], lab: Lab, order: Order) -> tuple[int, BenchResult]:
    """Measure in a thread, so that a signal is noticed at once and ends what runs in good order."""
    ahead = pending(result, steps)
    reporter = Reporter(ahead, len(steps) - len(ahead), Console(stderr=True), SystemClock())
    try:
        with reporter.shown(), signals_noted() as noted:
            work = lambda: run_plan(result, steps, lab, order.path, reporter.step, reporter.event)  # noqa: E731
            result = watched(work, noted, lab.stop)
            reporter.finish()
    except StoppedError as stopped:
        kept = f"{order.path} holds {reporter.done} of {len(steps)} steps" if reporter.done else ""
        click.echo("\n".join(_ending(stopped, kept, signalled=bool(noted))), err=True)
        return (128 + noted[0] if noted else _code_of(stopped.record)), result
    return _code_of_all(result), result


def _ending(stopped: StoppedError, kept: str, *, signalled: bool) -> Iterator[str]:
    """Yield why a benchmark ended early, what to do about it, and what is kept."""
    action = "" if signalled else next_action(stopped.record)
    yield f"heatsoak: {f'interrupted in {stopped.step}' if signalled else stopped}"
    if action:
        yield f"  -> {action}"
    if kept:
        yield f"heatsoak: {kept}; {'then ' if action else ''}the same command with --resume goes on"
    else:
        yield "heatsoak: nothing was measured, so no file was written"


def _smoke(invocation: Invocation, settings: Settings, order: Order) -> int:
    with _session(settings, order.device) as session:
        cards = _cards(session, order)
        if order.device == "gpu" and not cards:
            click.echo(f"no: {_no_card(session)}")
            return EXIT_UNKNOWN_CARD
        at_once = side_by_side(settings.probe, max(1, len(cards)))
        setup = Setup(memory_limit_bytes=order.memory_limit_bytes)
        ask = lambda: smoke.ask(session, cards, at_once, force=order.force, setup=setup)  # noqa: E731
        records = interruptible(ask, session.interrupt)
        result = _begun(invocation, settings, session, cards, order, None)
    names = [card.identity.name for card in cards] or [""]
    answers = [smoke.answer_of(own, name) for own, name in zip(records, names, strict=True)]
    code = smoke.exit_code(answers)
    result = _smoke_result(result, records)
    click.echo(smoke.text(answers), err=order.form != "table")
    if order.form == "json" or (order.form == "tf_cnn" and code == EXIT_OK):
        _print(result, order.form)
    if order.output is not None:
        with _written(order.output):
            save(result, order.output)
    return code


def _smoke_result(result: BenchResult, records: tuple[tuple[ProbeRecord, ...], ...]) -> BenchResult:
    extent: Extent = "smoke"
    machine = with_software(result.machine, records[0][0].environment)
    steps = tuple(
        Step(name=f"smoke/{at}", records=tuple(map(masked, own)), memory_limit_bytes=result.memory_limit_bytes)
        for at, own in enumerate(records)
    )
    label = result.label or default_label(machine)
    return msgspec.structs.replace(result, extent=extent, machine=machine, steps=steps, complete=True, label=label)


def _cards(session: ProbeSession, order: Order) -> tuple[Card, ...]:
    return session.choose(order.gpus, READY_S) if order.device == "gpu" else ()


def _no_card(session: ProbeSession) -> str:
    trouble = f" ({session.nvml.error}: {session.nvml.advice})" if session.nvml.error else ""
    return f"no card is known here{trouble}; heatsoak doctor looks for the cause, --device cpu measures the CPU"


def _code_of_all(result: BenchResult) -> int:
    records = [record for step in result.steps for record in step.records]
    if any(record.result.status == "wrong_answer" for record in records):
        return EXIT_BAD_CARD
    return EXIT_OK if any(record.result.status == "ok" for record in records) else EXIT_UNKNOWN_CARD


def _code_of(record: ProbeRecord) -> int:
    return EXIT_BAD_CARD if record.result.reason == "gpu_lost" else EXIT_UNKNOWN_CARD


def _print(result: BenchResult, form: Format) -> None:
    if form == "table":
        show(result, Console())
    elif form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(result, enc_hook=plain), indent=1))
    else:
        point = tf_cnn.chosen(result)
        if point is None:
            raise ConfigError([f"{result.label}: holds no series of single steps, which --format tf_cnn is made from"])
        click.echo("\n".join(tf_cnn.lines(point, result.machine.tensorflow)))


@contextlib.contextmanager
def _written(path: Path) -> Iterator[None]:
    """Tell of what cannot be written as people read it."""
    try:
        yield
    except OSError as error:
        raise ConfigError([f"{path}: cannot be written: {error.strerror or error}; what it held stands"]) from error


@contextlib.contextmanager
def _session(settings: Settings, kind: DeviceKind) -> Iterator[ProbeSession]:
    clock = SystemClock()
    source = ReaderClient(settings.nvml, clock) if kind == "gpu" and settings.nvml.enabled else None
    with workplace(clock) as directory:
        session = ProbeSession(settings.probe, source, clock, directory)
        session.start()
        try:
            yield session
        finally:
            session.close()


def _version() -> str:
    try:
        return metadata.version("heatsoak")
    except metadata.PackageNotFoundError:
        return "unknown"
