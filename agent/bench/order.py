"""What a benchmark was asked to do: by the command line, else by the file it goes on with, else by default."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, TypeVar

import click
import msgspec

from agent.bench.model import BenchResult
from agent.errors import ConfigError
from agent.model.probe import DeviceKind

DEFAULT_FILE: Final = Path("heatsoak-bench.json")
Format = Literal["table", "json", "tf_cnn"]
_T = TypeVar("_T")


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was asked for."""

    output: Path | None
    extent: Literal["quick", "full"]
    device: DeviceKind
    gpus: tuple[str, ...]
    """Indices and UUIDs of cards; empty for all."""
    label: str
    memory_limit_bytes: int
    """0 for none."""
    article: bool
    force: bool
    form: Format

    @property
    def path(self) -> Path:
        """Where the result of a benchmark goes."""
        return self.output or DEFAULT_FILE


class Begun(msgspec.Struct, frozen=True):
    """What a file was begun with; None where there is no file."""

    extent: Literal["quick", "full"] | None = None
    device: DeviceKind | None = None
    memory_limit_bytes: int | None = None


def begun(stored: BenchResult | None) -> Begun:
    """Return what a stored result was begun with.

    Raises:
        ConfigError: It is an answer of ``--smoke``, which has no further steps.
    """
    if stored is None:
        return Begun()
    if stored.extent == "smoke":
        raise ConfigError(["the file is an answer of --smoke, which has no further steps; name another file with -o"])
    return Begun(stored.extent, stored.machine.device, stored.memory_limit_bytes)


def settled(name: str, given: _T | None, stored: _T | None, default: _T, shown: Callable[[_T], str] = str) -> _T:
    """Return what was given, else what the file was begun with, else the default.

    Raises:
        ConfigError: What was given is not what the file was begun with.
    """
    if given is not None and stored is not None and given != stored:
        raise ConfigError([f"{name}: {shown(stored)} in the file, {shown(given)} now; name another file with -o"])
    return next((value for value in (given, stored) if value is not None), default)


def label_text(text: str) -> str:
    """Return a label as it is; fit as the type of a click option.

    Raises:
        click.BadParameter: It holds what cannot be printed on one line.
    """
    if not text.isprintable():
        raise click.BadParameter(f"{text!r} holds what cannot be printed on one line; leave it out")
    return text
