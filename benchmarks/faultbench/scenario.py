"""The bench's language: what a card reads, what changes when, what should be said about it.

A scenario starts from a profile (``profiles.toml``): readings of an idle or busy card. ``change`` entries
then set readings at a time; a flag set to a share, as ``throttle_active_hw_thermal = 0.3``, is up in that
share of the ticks at random. ``rates`` let counters rise, in units a second. ``process`` and ``host`` say
what the CPU side does, ``probe`` entries which probes finish. Times are seconds from the start.
"""

import sys
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
Values = dict[str, float]
Positive = Annotated[float, Meta(gt=0)]


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the language; unknown keys are errors."""


class Process(_Part, frozen=True):
    """What the process on a card does, as means."""

    cores: float = 0.1
    allowed: int = 16
    quota: float | None = None
    throttled: float = 0.0
    """Share of enforcement periods in which the quota runs out."""
    io: float = 0.0
    """Share of time in which tasks of its group wait for a disk."""
    blocked: float = 0.0
    kind: Literal["compute", "graphics"] = "compute"
    pid: int = 4242


class Nvml(_Part, frozen=True):
    """How the driver fares."""

    up: bool = True
    error: str = ""
    hung_s: float = 0.0
    cards: bool = True
    """Whether cards are named at all."""


class Change(_Part, frozen=True):
    """What changes at a time, for one card, or for all where none is named."""

    at_s: float
    gpu: int | None = None
    for_s: float | None = None
    """After so long everything this change set is as before."""
    profile: str | None = None
    set: Values = {}
    unset: tuple[str, ...] = ()
    rates: Values = {}
    lost: str | None = None
    hung_s: float | None = None
    silent: bool | None = None
    absent: bool | None = None
    process: Process | None = None
    no_process: bool = False
    host_used: float | None = None
    nvml: Nvml | None = None
    paused: bool | None = None
    exact: bool = False
    """At exactly this time; else a seed moves it by up to ten ticks."""


class Probes(_Part, frozen=True):
    """Probes that finish one after another on one card, or on all where none is named."""

    from_s: float
    count: int = 1
    every_s: float = 3600.0
    gpu: int | None = None
    status: Literal["ok", "skipped", "error", "timeout", "aborted", "wrong_answer"] = "ok"
    reason: str = ""
    level: float = 1.0
    """Value as a share of what this model measures."""
    slope_per_day: float = 0.0
    contended: bool = False
    throttled: float = 0.0
    """Share of the run during which heat held the clocks down."""
    driver: str = "580.159.04"
    outliers: float = 0.01
    """Share of runs that measure 6 % low for no lasting reason."""


class Expect(_Part, frozen=True):
    """What should be said: by a rule, about a card or the node, from when until when, how soon."""

    rule: str
    gpu: int | None = None
    """The card; None for the node."""
    state: str = ""
    cause: str = ""
    from_s: float = 0.0
    within_s: Positive = 60.0
    until_s: float | None = None
    """From ``within_s`` after this time on it must be silent again."""


class Scenario(_Part, frozen=True):
    """One case."""

    name: str
    family: str
    healthy: bool
    """Nothing here may raise an alarm: no state but ``ok``."""
    duration_s: Positive
    tick_s: Positive = 1.0
    cards: int = 1
    models: tuple[str, ...] = ()
    """Name of each card's model, where they differ."""
    profile: str = "busy"
    set: Values = {}
    unset: tuple[str, ...] = ()
    per_gpu: dict[str, Values] = {}
    """Readings of single cards from the start, by index."""
    process: Process | None = None
    host_used: float = 0.1
    expected_gpus: int | None = None
    on_bus: int | None = None
    """Cards on the PCI bus, where it is not the number of cards."""
    in_inventory: int | None = None
    resistance: dict[str, float] = {}
    """Thermal history: ``kelvin_per_watt`` and ``watts`` of the first ten loads, ``latest`` of two more."""
    levels: tuple[float, ...] = ()
    """What each card has measured since delivery, as a share of its model."""
    swing: float = 0.0
    """Amplitude of the daily swing of room temperature's effect, as a share of a probe's value."""
    change: tuple[Change, ...] = ()
    probe: tuple[Probes, ...] = ()
    expect: tuple[Expect, ...] = ()
    allow: tuple[str, ...] = ()
    """Rules that may hold besides, without being asked for."""
    state: str = "ok"
    """True state of the first card (of the node, where it is a node's state) at the end."""


class _File(_Part, frozen=True):
    scenario: tuple[Scenario, ...]


def load_scenarios(folder: Path = HERE / "scenarios") -> tuple[Scenario, ...]:
    """Return every scenario.

    Raises:
        ValueError: a name is used twice, or a file does not keep to the language.
    """
    found = [scenario for path in sorted(folder.glob("*.toml")) for scenario in _load(path)]
    names = [scenario.name for scenario in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ValueError(f"{folder}: names used twice: {', '.join(twice)}")
    return tuple(found)


def _load(path: Path) -> tuple[Scenario, ...]:
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), type=_File, strict=False).scenario
    except (msgspec.ValidationError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path}: {error}") from error


def load_profiles(path: Path = HERE / "profiles.toml") -> dict[str, Values]:
    """Return the readings of each profile, complete: what a profile leaves out comes from ``common``."""
    tables = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), type=dict[str, Values], strict=False)
    return {name: {**tables["common"], **values} for name, values in tables.items()}
