"""``heatsoak probe``: run one measurement now, or judge the idle cards quickly."""

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import Final

import click
import msgspec

from agent import logs, usage
from agent.clock import SystemClock
from agent.config.settings import Settings
from agent.errors import EXIT_BAD_CARD, EXIT_OK, EXIT_UNKNOWN_CARD, ConfigError
from agent.host.files import Tree
from agent.host.pci import nvidia_bus_ids
from agent.interrupt import interruptible
from agent.invocation import Invocation
from agent.model.next_action import next_action
from agent.model.plain import plain
from agent.model.probe import PROBE_KINDS, DeviceKind, ProbeName, ProbeRecord, ProbeRequest
from agent.nvml.client import ReaderClient
from agent.probes.quick import (
    WITHIN_S,
    NodeJudgement,
    judge_nothing,
    judge_records,
    judgement_text,
    known_references,
    measure_cards,
    side_by_side,
)
from agent.probes.session import ProbeSession
from agent.probes.show import Progress, record_row, table

DTYPES: Final = ("bf16", "fp16", "tf32", "fp32", "fp64")
READY_S: Final = 4.0
"""How long to wait for the driver and for cards to be seen at rest."""
TAKES: Final = MappingProxyType(
    {
        "matmul": ("dtype", "size", "seconds"),
        "resnet50": ("dtype", "batch", "size", "seconds", "xla"),
        "vgg16": ("dtype", "batch", "size", "seconds", "xla"),
        "memory": ("dtype", "batch", "size", "xla"),
        "pipeline": ("dtype", "batch", "size", "seconds", "xla"),
        "bandwidth": ("seconds",),
        "fill": (),
    }
)
"""What of a request each probe heeds."""
_OF_REQUESTS: Final = ("dtype", "batch", "size", "seconds", "xla")
_ON_CPU: Final = MappingProxyType({"matmul": (1024, 0), "resnet50": (64, 2), "vgg16": (64, 2)})
"""Size and batch that a CPU gets through in seconds."""


@click.command()
@click.argument("name", required=False, type=click.Choice(sorted(PROBE_KINDS)))
@click.option("--quick", is_flag=True, help="Judge the idle cards: exit code 0 fine, 10 bad, 11 not judged.")
@click.option("--gpu", "gpus", multiple=True, help="Index or UUID of a card; may be repeated. Default: all cards.")
@click.option("--device", type=click.Choice(["gpu", "cpu"]), help="Default: probe.device of the configuration.")
@click.option("--dtype", type=click.Choice(DTYPES), help="Data type. Default: the probe's own.")
@click.option("--batch", type=click.IntRange(0, 1 << 16), default=0, help="Images a step. Default: by the card.")
@click.option(
    "--size", type=click.IntRange(0, 1 << 20), default=0, help="Side of the matrices, or of the images in pixels."
)
@click.option("--seconds", type=click.FloatRange(0, 3600), default=0.0, help="Length of the timed window.")
@click.option("--xla", is_flag=True, help="Compile with XLA.")
@click.option("--force", is_flag=True, help="Run on cards that are not idle too.")
@click.option(
    "--within",
    "within_s",
    type=click.FloatRange(5, 600),
    default=WITHIN_S,
    help="Seconds --quick may take.",
    show_default=True,
)
@click.option("--allow-unknown", is_flag=True, help="Exit code 0 in place of 11.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def probe(
    context: click.Context,
    name: ProbeName | None,
    *,
    quick: bool,
    gpus: tuple[str, ...],
    device: DeviceKind | None,
    dtype: str | None,
    batch: int,
    size: int,
    seconds: float,
    xla: bool,
    force: bool,
    within_s: float,
    allow_unknown: bool,
    as_json: bool,
) -> int:
    """Run the probe NAME now, or judge the idle cards with --quick.

    A card that is not idle is left alone unless --force is given. Exit codes: 0 all went well; 10 a card is
    degraded, faulty or lost; 11 something could not be measured or judged; 2 usage; 130 and 143 interrupted.

    \f
    Raises:
        click.UsageError: Neither --quick nor a probe was named, or both, or an option that would be without effect.
    """  # noqa: D301 - click ends its help at the form feed
    invocation: Invocation = context.obj
    if (name is None) != quick:
        raise click.UsageError(f"give either --quick or the name of a probe: {', '.join(sorted(PROBE_KINDS))}")
    settings = invocation.settings()
    kind: DeviceKind = "gpu" if quick else device or settings.probe.device
    _refuse_unheeded(context, name, kind)
    logs.configure(msgspec.structs.replace(settings.log, level="error"), invocation.environ, sys.stderr)
    with _session(invocation, settings, kind) as session:
        if name is None:
            work = lambda: _judgement(invocation, settings, session, gpus, within_s)  # noqa: E731
            node = interruptible(work, session.interrupt)
            click.echo(_as_json(node) if as_json else judgement_text(node))
            code = node.exit_code
        else:
            options = _options(settings, name)
            request = ProbeRequest(name, dtype or "", size, batch, "xla" if xla else "graph", seconds, options)
            code = _measure(session, _fit(request, kind), kind, gpus, force=force, as_json=as_json)
    return EXIT_OK if allow_unknown and code == EXIT_UNKNOWN_CARD else code


def _refuse_unheeded(context: click.Context, name: ProbeName | None, kind: DeviceKind) -> None:
    """Refuse options that would change nothing about the run."""
    if name is None:
        usage.refuse(context, ("device", "force", *_OF_REQUESTS), "beside --quick, which always measures the same")
        return
    usage.refuse(context, ("within_s",), "without --quick")
    usage.refuse(context, set(_OF_REQUESTS) - set(TAKES[name]), f"on the probe {name}")
    if kind == "cpu":
        usage.refuse(context, ("gpus", "force"), "on the CPU (--device, probe.device)")


def _measure(
    session: ProbeSession, request: ProbeRequest, kind: DeviceKind, gpus: tuple[str, ...], *, force: bool, as_json: bool
) -> int:
    """Run one request on each device, one after the other, and print what came; a signal ends it after that."""
    records: list[ProbeRecord] = []
    try:
        interruptible(lambda: _run_each(session, request, kind, gpus, records, force=force), session.interrupt)
    finally:
        done = [record for record in records if record.result.reason != "shutting_down"]
        if done:
            click.echo(_as_json({"records": done}) if as_json else _told(done))
    return exit_code_of(records)


def _run_each(
    session: ProbeSession,
    request: ProbeRequest,
    kind: DeviceKind,
    gpus: tuple[str, ...],
    records: list[ProbeRecord],
    *,
    force: bool,
) -> None:
    """Add the records of each device to ``records``, as they come."""
    progress = Progress()
    try:
        for uuid in [None] if kind == "cpu" else _named(session, gpus):
            title = uuid or "cpu"
            progress.say(f"{title}: starting")
            records += session.run((request,), uuid, on_event=progress.of(title, (request,)), force=force)
    finally:
        progress.clear()


def _told(records: list[ProbeRecord]) -> str:
    """Return records for people, and what to do about those without a value."""
    lines = [table(("device", "probe", "value", "spread", ""), [record_row(record) for record in records])]
    lines += dict.fromkeys(f"-> {action}" for action in map(next_action, records) if action)
    return "\n".join(lines)


def _as_json(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=plain).decode()


def exit_code_of(records: list[ProbeRecord]) -> int:
    """Return 10 where a card computed wrong or was lost, 11 where there is no value, else 0."""
    if any(record.result.status == "wrong_answer" or record.result.reason == "gpu_lost" for record in records):
        return EXIT_BAD_CARD
    return EXIT_OK if all(record.result.status == "ok" for record in records) else EXIT_UNKNOWN_CARD


def _named(session: ProbeSession, gpus: tuple[str, ...]) -> list[str]:
    cards = session.choose(gpus, READY_S)
    if not cards:
        trouble = f" ({session.nvml.error}: {session.nvml.advice})" if session.nvml.error else ""
        raise ConfigError([f"no card is known here{trouble}; --device cpu measures the CPU"])
    return [card.identity.uuid for card in cards]


def _judgement(
    invocation: Invocation, settings: Settings, session: ProbeSession, gpus: tuple[str, ...], within_s: float
) -> NodeJudgement:
    """Judge the cards that are idle, all at once as far as the host allows."""
    clock = SystemClock()
    until_s = clock.monotonic_s() + within_s
    cards = session.choose(gpus, READY_S)
    if not cards:
        return judge_nothing(nvidia_bus_ids(Tree(settings.host.sys_root)), session.nvml.error)
    records = measure_cards(session, cards, clock, until_s, side_by_side(settings.probe, len(cards)))
    references = known_references(invocation.state_directory(settings))
    expected = -1 if gpus else settings.node.expected_gpus
    return judge_records(cards, records, references, settings.verdicts.degraded, expected)


def _fit(request: ProbeRequest, kind: DeviceKind) -> ProbeRequest:
    """Give a CPU sizes it can work through, where none were asked for."""
    if kind == "gpu" or request.probe not in _ON_CPU:
        return request
    size, batch = _ON_CPU[request.probe]
    return msgspec.structs.replace(request, size=request.size or size, batch=request.batch or batch)


def _options(settings: Settings, name: ProbeName) -> dict[str, str | float | bool]:
    data_dir = settings.pipeline.data_dir
    return {"data_dir": data_dir} if name == "pipeline" and data_dir else {}


@contextlib.contextmanager
def _session(invocation: Invocation, settings: Settings, kind: DeviceKind) -> Iterator[ProbeSession]:
    """Open a session whose packed workloads and compilation caches are kept in the user's cache directory."""
    clock = SystemClock()
    source = ReaderClient(settings.nvml, clock) if kind == "gpu" and settings.nvml.enabled else None
    with contextlib.ExitStack() as stack:
        directory = cache_directory(invocation)
        if directory is None:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="heatsoak-")))
        session = ProbeSession(settings.probe, source, clock, directory)
        session.start()
        try:
            yield session
        finally:
            session.close()


def cache_directory(invocation: Invocation) -> Path | None:
    """Return where this user may keep caches, made if missing; None where nothing can be kept.

    Not the agent's own directory: what root leaves there the agent's user could not replace.
    """
    home = invocation.environ.get("XDG_CACHE_HOME") or ""
    if invocation.uid == 0:
        directory = Path("/var/cache/heatsoak")
    elif home.startswith("/"):
        directory = Path(home) / "heatsoak"
    elif invocation.environ.get("HOME", "").startswith("/"):
        directory = Path(invocation.environ["HOME"]) / ".cache" / "heatsoak"
    else:
        return None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return None
    return directory if os.access(directory, os.W_OK) else None
