"""Every GPU reading is one row of one table.

Reader, exporter, docs/METRICS.md, the configuration's on/off list and the dashboard tests derive from
it; adding a quantity is adding a row.
"""

from typing import Final

import msgspec

from agent.model.vocabulary import MetricKind, Tier


class Call(msgspec.Struct, frozen=True):
    """A getter ``nvml<function>(device, *args)``; names starting with NVML_ are constants of pynvml.

    ``attribute`` picks a field of the struct or ``item`` an element of the tuple it returns.
    """

    function: str
    args: tuple[str | int, ...] = ()
    attribute: str = ""
    item: int | None = None


class Field(msgspec.Struct, frozen=True):
    """A field value id of nvmlDeviceGetFieldValues, by the name of its constant."""

    name: str
    scope: int = 0


class Bit(msgspec.Struct, frozen=True):
    """One bit of the clocks-event-reasons mask, by the name of its constant."""

    constant: str


class Peak(msgspec.Struct, frozen=True):
    """The largest value in a driver sample buffer since the previous read."""

    buffer: str


class Gpm(msgspec.Struct, frozen=True):
    """A GPM metric between two samples, by the name of its constant."""

    metric: str


class Special(msgspec.Struct, frozen=True):
    """Read by the function of this name in ``agent.nvml.special``."""

    reader: str


Source = Call | Field | Bit | Peak | Gpm | Special


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """One row: where a value comes from, what it is called, which values are believable.

    ``sources`` are tried in order until one is supported. The raw value times ``scale`` is in the unit
    that ``metric`` ends in; what then lies outside ``low``..``high`` is dropped and counted.
    """

    key: str
    metric: str
    help: str
    kind: MetricKind
    tier: Tier
    sources: tuple[Source, ...]
    scale: float = 1.0
    low: float = 0.0
    high: float = float("inf")
    labels: tuple[tuple[str, str], ...] = ()
    default_on: bool = True


QUANTITIES: Final[tuple[Quantity, ...]] = ()
