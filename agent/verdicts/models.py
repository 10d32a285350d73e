"""The shipped table of card models: what good cards reach, how much they differ, and how that is known."""

import functools
import sys
from collections.abc import Mapping
from importlib import resources
from typing import Literal

import msgspec

from agent.model.probe import ProbeResult

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Basis = Literal["own_runs", "published"]


class Floor(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The least a good card reaches in one figure, in the probe's unit."""

    probe: str
    dtype: str
    shape: str = ""
    """Empty: whatever the shape."""
    method_version: int = 0
    """0: whatever the method."""
    value: float
    basis: Basis
    """``own_runs`` may condemn a card; ``published`` figures were made by another method and only inform."""
    source: str


class Model(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One card model, by the name the driver gives."""

    name: str
    spread: float | None = None
    """Robust standard deviation of good cards, as a share; None where it is not known."""
    spread_source: str = ""
    floors: tuple[Floor, ...] = ()

    def floor_for(self, result: ProbeResult) -> Floor | None:
        """Return the floor a result must reach, one of our own runs first; None where none is known."""
        fitting = [
            floor
            for floor in self.floors
            if (floor.probe, floor.dtype) == (result.probe, result.dtype)
            and floor.shape in ("", result.shape)
            and floor.method_version in (0, result.method_version)
        ]
        return min(fitting, key=lambda floor: floor.basis != "own_runs", default=None)


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    models: tuple[Model, ...]


@functools.cache
def models() -> Mapping[str, Model]:
    """Return the table by model name."""
    text = (resources.files("agent") / "data" / "models.toml").read_text(encoding="utf-8")
    return {model.name: model for model in msgspec.convert(tomllib.loads(text), type=_Table).models}


def model_of(name: str) -> Model | None:
    """Return what is known of a model; None for one that is not in the table."""
    return models().get(name)
