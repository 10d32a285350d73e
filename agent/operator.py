"""``heatsoak pause`` and ``heatsoak resume``: take cards out of the agent's hands and give them back."""

import click

from agent.control import ask
from agent.duration import duration_s
from agent.invocation import Invocation


@click.command()
@click.option("--gpu", "gpus", multiple=True, help="Index or UUID of a card; may be repeated. Default: all cards.")
@click.option("--for", "for_s", type=duration_s, help="How long, as 90s, 30m, 2h or 1d. Default: until resumed.")
@click.pass_obj
def pause(invocation: Invocation, gpus: tuple[str, ...], for_s: float | None) -> None:
    """Let go of cards, so that they can be reset, put into MIG mode, or the driver unloaded.

    A paused card's state is `maintenance`: it is not read, not probed, and its alerts are inhibited. With
    all cards paused the agent lets go of the driver itself.
    """
    answer = ask(invocation.control_socket(invocation.settings()), {"command": "pause", "gpus": gpus, "for_s": for_s})
    click.echo(f"paused: {', '.join(answer['uuids'])}")


@click.command()
@click.option("--gpu", "gpus", multiple=True, help="Index or UUID of a card; may be repeated. Default: all cards.")
@click.pass_obj
def resume(invocation: Invocation, gpus: tuple[str, ...]) -> None:
    """Take paused cards up again."""
    answer = ask(invocation.control_socket(invocation.settings()), {"command": "resume", "gpus": gpus})
    click.echo(f"resumed: {', '.join(answer['uuids']) or 'none was paused'}")
