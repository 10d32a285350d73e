"""A click group that imports a command only when it is called: the agent's process stays small."""

import importlib
from collections.abc import Mapping
from typing import cast

import click


class LazyGroup(click.Group):
    """Commands by name, each as ``module:attribute`` and its line in the help."""

    def __init__(self, *, lazy: Mapping[str, tuple[str, str]], **settings: object) -> None:
        """Take the table of commands; the rest goes to click."""
        super().__init__(**settings)  # type: ignore[arg-type]
        self._lazy = lazy

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the table's order."""
        return [*self._lazy, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command; None where there is none of that name."""
        if cmd_name not in self._lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self._lazy[cmd_name][0].partition(":")
        return cast("click.Command", getattr(importlib.import_module(module), attribute))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """Write the table's help lines without importing a command."""
        rows = [(name, line) for name, (_, line) in self._lazy.items()]
        rows += [(name, command.get_short_help_str()) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl(rows)
