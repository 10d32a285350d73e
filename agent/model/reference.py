"""What a card once measured, to be compared with what it measures now."""

from typing import Literal, NamedTuple

import msgspec

from agent.model.probe import ProbeRecord, ProbeResult

Origin = Literal["learnt", "renewed", "imported"]


class Series(NamedTuple):
    """Figures of one card that measure the same thing, whatever the software and the power limit."""

    probe: str
    variant: str
    dtype: str
    shape: str
    mode: str


class Circumstances(NamedTuple):
    """What a figure depends on beside the card: figures under other circumstances are not compared directly."""

    method_version: int
    tensorflow: str
    driver: str
    power_limit_watts: int | None
    """Whole watts; None where it was not read."""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A card's own figure for one kind of probe under one environment, frozen until an operator renews it."""

    uuid: str
    probe: str
    dtype: str
    shape: str
    mode: str = "graph"
    variant: str = ""
    method_version: int = 0
    tensorflow: str = ""
    driver: str = ""
    power_limit_watts: float | None = None
    median: float
    """In the probe's unit."""
    mad: float
    """Median absolute deviation over the runs, in the probe's unit."""
    unit: str = ""
    runs: int
    first_wall_s: float
    last_wall_s: float
    made_wall_s: float = 0.0
    origin: Origin = "learnt"
    disputed: bool = False
    """Made after a change of driver or TensorFlow, and too far from the one before to replace it."""
    degraded_before: bool = False
    """Disputed, and the card was slow under the one before: that verdict stands."""
    temperature_median_celsius: float | None = None
    temperature_min_celsius: float | None = None
    temperature_max_celsius: float | None = None
    """Of the card while it measured, over the runs; None where it was not read."""
    slope_per_kelvin: float = 0.0
    """By which share of the median the figure changes with each kelvin, from the runs; 0 where they do not tell."""
    sm_clock_median_hertz: float | None = None
    memory_clock_median_hertz: float | None = None

    @property
    def series(self) -> Series:
        """Return what it measures."""
        return Series(self.probe, self.variant, self.dtype, self.shape, self.mode)

    @property
    def circumstances(self) -> Circumstances:
        """Return under which circumstances it was made."""
        return Circumstances(self.method_version, self.tensorflow, self.driver, _whole(self.power_limit_watts))


def series_of(result: ProbeResult) -> Series:
    """Return what a result measures."""
    return Series(result.probe, result.variant, result.dtype, result.shape, result.mode)


def circumstances_of(record: ProbeRecord) -> Circumstances:
    """Return under which circumstances a record was made."""
    limit_watts = record.attribution.power_limit_watts if record.attribution else None
    return Circumstances(
        record.result.method_version, record.environment.tensorflow, record.environment.driver, _whole(limit_watts)
    )


def current_reference(
    references: tuple[Reference, ...], uuid: str, series: Series, circumstances: Circumstances
) -> Reference | None:
    """Return the reference that counts: an operator's newest, else the first that was learnt; None without any."""
    fitting = [
        reference
        for reference in references
        if reference.uuid == uuid and reference.series == series and reference.circumstances == circumstances
    ]
    by_operator = [reference for reference in fitting if reference.origin != "learnt"]
    if by_operator:
        return max(by_operator, key=lambda reference: reference.made_wall_s)
    return min(fitting, key=lambda reference: reference.made_wall_s, default=None)


def _whole(watts: float | None) -> int | None:
    return None if watts is None else round(watts)
