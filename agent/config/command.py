"""``heatsoak config``: check a configuration, show what is in force, print a sample."""

from pathlib import Path

import click

from agent.config.load import unknown_variables
from agent.config.sample import render, sample
from agent.errors import ConfigError
from agent.invocation import Invocation


@click.group()
def config() -> None:
    """Check, show or sample the configuration."""


@config.command()
@click.pass_obj
def check(invocation: Invocation) -> None:
    """Say every fault of the configuration.

    Read are file, environment and the web configuration. Exit code 2 where there are faults.

    \f
    Raises:
        ConfigError: There are faults; it holds all of them.
    """  # noqa: D301 - click ends its help at the form feed
    web_file = invocation.settings().web.config_file
    if web_file and (faults := invocation.web_faults(Path(web_file))):
        raise ConfigError(list(faults))
    for line in unknown_variables(invocation.environ):
        click.echo(f"warning: {line}", err=True)
    click.echo("the configuration is right")


@config.command()
@click.pass_obj
def show(invocation: Invocation) -> None:
    """Print the settings in force.

    The environment goes before the file, the file before the defaults.
    """
    click.echo(render(invocation.settings()), nl=False)


@config.command(name="defaults")
def defaults() -> None:
    """Print a commented file of all settings with their defaults."""
    click.echo(sample(), nl=False)
