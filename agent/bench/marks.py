"""What disturbed a measurement: said beside its figure wherever that is shown."""

from collections.abc import Iterable, Iterator
from typing import Final

from agent.model.probe import ProbeRecord
from agent.probes.attribution import MOST_SLOWED_SHARE, SLOWING_REASONS

MOST_SPREAD: Final = 0.05
"""Repeats of one measurement whose median absolute deviation is a larger share of their median are unsteady."""
MEANING: Final = (
    "contended: another process was on the card; slowed by: the driver held clocks back for that share of the time; "
    f"unsteady: repeats lay that far from their median, above {MOST_SPREAD:.0%}. Measure such figures again before "
    "they are held against a card"
)
"""What the marks say, for below a table that has some."""


def marks(record: ProbeRecord) -> tuple[str, ...]:
    """Return what disturbed a measurement: another process, heat, the power supply, or whatever made it unsteady."""
    return tuple(_marks(record))


def marks_text(records: Iterable[ProbeRecord]) -> str:
    """Return the marks of what a row is made of, each once; empty where nothing disturbed it."""
    return ", ".join(dict.fromkeys(mark for record in records for mark in marks(record)))


def _marks(record: ProbeRecord) -> Iterator[str]:
    seen, timing = record.attribution, record.result.timing
    if seen is not None and seen.contended:
        yield "contended"
    for reason in SLOWING_REASONS:
        share = seen.throttle_share.get(reason, 0.0) if seen is not None else 0.0
        if share > MOST_SLOWED_SHARE:
            yield f"slowed by {reason} for {share:.0%}"
    if timing is not None and timing.mad_s > MOST_SPREAD * timing.median_s:
        yield f"unsteady, repeats ±{timing.mad_s / timing.median_s:.1%}"
