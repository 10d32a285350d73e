"""``heatsoak doctor``: what stands between this machine and numbers that can be trusted."""

import sys
import tempfile
import threading
from pathlib import Path
from typing import Final

import click
import msgspec

from agent import logs
from agent.clock import SystemClock
from agent.config.sample import render
from agent.config.settings import Settings
from agent.doctor.bundle import refuse_existing, write_bundle
from agent.doctor.check import Check, worst
from agent.doctor.checks import examine
from agent.doctor.facts import Facts, gather
from agent.errors import EXIT_OK, EXIT_UNKNOWN_CARD
from agent.invocation import Invocation
from agent.model.plain import plain
from agent.model.probe import ProbeRecord, ProbeRequest
from agent.nvml.client import ReaderClient
from agent.nvml.recording import record as record_cards
from agent.probes.session import ProbeSession

_WATCH_S: Final = 3.0
_SETTLE_S: Final = 4.0
_SMALL: Final = ProbeRequest("matmul", "fp32", size=512, seconds=0.2)
_COLOURS: Final = {"pass": "green", "warn": "yellow", "fail": "red", "skip": None}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--no-probe", is_flag=True, help="Do not start TensorFlow.")
@click.option("--bundle", type=click.Path(path_type=Path), metavar="FILE", help="Write a redacted archive for support.")
@click.pass_obj
def doctor(invocation: Invocation, *, as_json: bool, no_probe: bool, bundle: Path | None) -> int:
    """Examine driver, cards, TensorFlow, container and limits; say what to do about each fault.

    Exit codes: 0 nothing failed; 11 something failed, so that cards cannot be judged; 2 usage, or an archive that is
    there already.
    """
    settings = invocation.settings()
    if bundle:
        refuse_existing(bundle)
    logs.configure(msgspec.structs.replace(settings.log, level="error"), invocation.environ, sys.stderr)
    with tempfile.TemporaryDirectory(prefix="heatsoak-doctor-") as name:
        recording = Path(name) / "cards.jsonl"
        reading = record_cards(recording, settings.nvml, SystemClock(), threading.Event(), _WATCH_S)
        probe = None if no_probe else _try_tensorflow(settings, Path(name))
        facts = gather(settings, invocation.environ, reading, probe)
        checks = examine(facts)
        if bundle:
            documents = _documents(settings, facts, checks)
            write_bundle(bundle, documents, recording.read_bytes(), _names(invocation, facts))
    click.echo(_json(checks) if as_json else "\n".join(map(_line, checks)))
    if bundle:
        click.echo(f"{bundle}: redacted; look through it before you send it", err=True)
    return EXIT_UNKNOWN_CARD if worst(checks) == "fail" else EXIT_OK


def _try_tensorflow(settings: Settings, directory: Path) -> ProbeRecord | None:
    """Return a small product's record, on the first idle card, else on the CPU where there is no card."""
    source = ReaderClient(settings.nvml, SystemClock()) if settings.nvml.enabled else None
    session = ProbeSession(settings.probe, source, SystemClock(), directory)
    session.start()
    try:
        uuids = [card.identity.uuid for card in session.settle(_SETTLE_S)]
        uuid = next((uuid for uuid in uuids if not session.why_not(uuid)), uuids[0] if uuids else None)
        return next(iter(session.run((_SMALL,), uuid)), None)
    finally:
        session.close()


def _documents(settings: Settings, facts: Facts, checks: tuple[Check, ...]) -> dict[str, str]:
    return {
        "checks.json": _json(checks),
        "facts.json": msgspec.json.format(msgspec.json.encode(facts, enc_hook=plain)).decode(),
        "configuration.toml": render(settings),
        "python.txt": sys.version,
    }


def _names(invocation: Invocation, facts: Facts) -> list[str]:
    serials = [card.identity.serial for card in facts.reading.cards]
    return [*serials, invocation.environ.get("HOSTNAME", ""), invocation.environ.get("USER", "")]


def _json(checks: tuple[Check, ...]) -> str:
    return msgspec.json.format(msgspec.json.encode({"outcome": worst(checks), "checks": checks})).decode()


def _line(check: Check) -> str:
    mark = click.style(f"{check.outcome:4}", fg=_COLOURS[check.outcome], bold=check.outcome != "skip")
    action = f"\n{'':6}-> {check.next_action}" if check.next_action else ""
    return f"{mark}  {check.name}: {check.found}{action}"
