"""What a row of the quantities table is, and the short forms it is written in."""

from typing import Final

import msgspec

from agent.model.vocabulary import MetricKind, Tier


class Call(msgspec.Struct, frozen=True):
    """A getter ``nvml<function>(device, *args)``; text among ``args`` names a constant of pynvml.

    ``attribute`` picks a field of the struct or ``item`` an element of the tuple it returns.
    """

    function: str
    args: tuple[str | int, ...] = ()
    attribute: str = ""
    item: int | None = None


class Bit(msgspec.Struct, frozen=True):
    """One bit, 0 or 1, of the mask that ``nvml<function>(device)`` returns, by the name of its constant."""

    function: str
    constant: str


class Field(msgspec.Struct, frozen=True):
    """A field value id of nvmlDeviceGetFieldValues, by the name of its constant."""

    name: str
    scope: int = 0


class LinkSum(msgspec.Struct, frozen=True):
    """The sum over all NVLink links of a field value whose scope is the link."""

    name: str


class Peak(msgspec.Struct, frozen=True):
    """The largest value in a driver sample buffer since the previous read, by the name of its constant."""

    buffer: str


class Gpm(msgspec.Struct, frozen=True):
    """A GPM metric between this sample and the previous one, by the name of its constant."""

    metric: str


class Fabric(msgspec.Struct, frozen=True):
    """One part of nvmlDeviceGetGpuFabricInfoV: ``state``, ``status`` or ``healthSummary``."""

    attribute: str


class Derived(msgspec.Struct, frozen=True):
    """Worked out by the agent from other readings, by the rule of this name in ``agent.nvml.derive``."""

    rule: str


Source = Call | Bit | Field | LinkSum | Peak | Gpm | Fabric | Derived


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """One row: where a value comes from, what it is called, which values are believable.

    ``sources`` are tried in order until one is supported. The driver's number times ``scale`` over
    ``divisor`` is in the unit that ``metric`` ends in; what then lies outside ``low``..``high``, or above
    the value of the row ``at_most``, is dropped and counted.
    """

    key: str
    metric: str
    help: str
    kind: MetricKind
    tier: Tier
    sources: tuple[Source, ...]
    scale: float = 1.0
    divisor: float = 1.0
    low: float = 0.0
    high: float = float("inf")
    at_most: str = ""
    labels: tuple[tuple[str, str], ...] = ()


PREFIX: Final = "heatsoak_gpu_"
PERCENT: Final = 100.0
MILLI: Final = 1e3
NANO: Final = 1e9


def gauge(
    key: str,
    text: str,
    tier: Tier,
    *sources: Source,
    metric: str = "",
    scale: float = 1.0,
    divisor: float = 1.0,
    low: float = 0.0,
    high: float = float("inf"),
    at_most: str = "",
    **labels: str,
) -> Quantity:
    """Return a row that goes up and down; its metric is ``key`` behind the prefix unless ``metric`` says else."""
    return Quantity(
        key=key,
        metric=PREFIX + (metric or key),
        help=text,
        kind="gauge",
        tier=tier,
        sources=sources,
        scale=scale,
        divisor=divisor,
        low=low,
        high=high,
        at_most=at_most,
        labels=tuple(labels.items()),
    )


def counter(
    key: str,
    text: str,
    tier: Tier,
    *sources: Source,
    metric: str = "",
    scale: float = 1.0,
    divisor: float = 1.0,
    high: float = 2.0**63,
    **labels: str,
) -> Quantity:
    """Return a row that only rises while the driver stays loaded."""
    return Quantity(
        key=key,
        metric=PREFIX + (metric or key),
        help=text,
        kind="counter",
        tier=tier,
        sources=sources,
        scale=scale,
        divisor=divisor,
        high=high,
        labels=tuple(labels.items()),
    )


def flag(key: str, text: str, tier: Tier, *sources: Source) -> Quantity:
    """Return a row that is 0 or 1."""
    return gauge(key, text, tier, *sources, high=1)


def share(key: str, text: str, tier: Tier, *sources: Source) -> Quantity:
    """Return a row that the driver gives in per cent and that is served as 0 to 1."""
    return gauge(key, text, tier, *sources, divisor=PERCENT, high=1)
