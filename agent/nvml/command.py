"""``heatsoak record``: save what the cards say to a file."""

import threading
from pathlib import Path

import click

from agent.clock import SystemClock
from agent.errors import EXIT_OK, EXIT_UNKNOWN_CARD
from agent.invocation import Invocation
from agent.nvml.recording import discard_without_card
from agent.nvml.recording import record as record_cards


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--for", "duration_s", type=click.FloatRange(min=1), default=60.0, metavar="SECONDS", show_default=True)
@click.option("--unmasked", is_flag=True, help="Keep UUIDs and serial numbers.")
@click.pass_obj
def record(invocation: Invocation, file: Path, duration_s: float, *, unmasked: bool) -> int:
    """Save what the cards say to FILE, to be played with `run --replay FILE`.

    Exit code 11 where no card answered; no file is left then.
    """
    stop = threading.Event()
    try:
        reading = record_cards(file, invocation.settings().nvml, SystemClock(), stop, duration_s, mask=not unmasked)
    except KeyboardInterrupt:
        if not file.exists():
            click.echo("stopped before a card answered; nothing was saved", err=True)
            return EXIT_UNKNOWN_CARD
        click.echo(f"stopped early; {file} holds what came until then", err=True)
        return EXIT_OK
    trouble = f" ({reading.nvml.error})" if reading.nvml.error else ""
    if discard_without_card(file):
        click.echo(f"no card answered{trouble}; nothing was saved", err=True)
        return EXIT_UNKNOWN_CARD
    click.echo(f"{file}: {len(reading.cards)} cards{trouble}")
    return EXIT_OK if reading.nvml.up else EXIT_UNKNOWN_CARD
