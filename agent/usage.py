"""Options that a command would ignore beside others are refused, so that nobody believes they took effect."""

from collections.abc import Collection

import click
from click.core import ParameterSource


def refuse(context: click.Context, names: Collection[str], where: str) -> None:
    """Refuse those of the parameters ``names`` that were given on the command line; ``where`` says why.

    Raises:
        click.UsageError: some were; it names them.
    """
    given = [
        parameter.opts[0]
        for parameter in context.command.params
        if parameter.name in names and context.get_parameter_source(parameter.name) is ParameterSource.COMMANDLINE
    ]
    if given:
        raise click.UsageError(f"{' and '.join(given)}: without effect {where}; leave it out", context)
