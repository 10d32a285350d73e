"""The composition root: the command line, and the only module that knows both agent and exporters."""

import os
import sys
import traceback
from importlib import metadata
from typing import Final

import click

from agent.errors import EXIT_INTERNAL, EXIT_OK, HeatsoakError
from agent.invocation import Invocation
from agent.lazy import LazyGroup

_COMMANDS: Final = {
    "run": ("heatsoak_run:run", "Run the agent: measure, probe, judge, serve."),
    "check": ("agent.verdicts.check:check", "One line per card from the running agent; exit code for scripts."),
    "probe": ("agent.probes.command:probe", "Run one probe now, or --quick to judge the idle cards."),
    "record": ("agent.nvml.command:record", "Save what the cards say to a file, to be played with run --replay."),
    "pause": ("agent.operator:pause", "Let go of cards: for a reset, MIG mode, a driver upgrade."),
    "resume": ("agent.operator:resume", "Take paused cards up again."),
    "reference": ("agent.state.command:reference", "Show, renew, export or import what a card once measured."),
    "inventory": ("agent.state.command:inventory", "Which cards belong to this node."),
    "config": ("agent.config.command:config", "Check, show or sample the configuration."),
}


def version() -> str:
    """Return the version of the installed distribution; ``unknown`` in a tree that was not installed."""
    try:
        return metadata.version("heatsoak")
    except metadata.PackageNotFoundError:
        return "unknown"


@click.group(cls=LazyGroup, lazy=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--config", "config_path", metavar="FILE", help="TOML file; default: HEATSOAK_CONFIG, else /etc/heatsoak/heatsoak.toml if it exists.")
@click.option("--state-dir", default="", metavar="DIR", help="State directory; default: HEATSOAK_STATE_DIR, else see the documentation.")
@click.version_option(version(), prog_name="heatsoak")
@click.pass_context
def cli(context: click.Context, config_path: str | None, state_dir: str) -> None:
    """Tell which GPU is slow, and why."""
    context.obj = Invocation(
        environ=dict(os.environ), uid=os.geteuid(), config_path=config_path, state_dir=state_dir
    )


def main() -> None:
    """Run the command line and exit with its documented code."""
    raise SystemExit(_run())


def _run() -> int:
    try:
        code = cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return 130
    except HeatsoakError as error:
        for line in str(error).splitlines():
            click.echo(f"heatsoak: {line}", err=True)
        return error.exit_code
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output left; nothing to say and nobody to say it to
        return EXIT_OK
    except Exception:  # noqa: BLE001 - the edge of the process: a fault of ours gets its own exit code
        traceback.print_exc()
        click.echo("heatsoak: internal error, please report it with the lines above", err=True)
        return EXIT_INTERNAL
    return code if isinstance(code, int) else EXIT_OK


if __name__ == "__main__":
    main()
