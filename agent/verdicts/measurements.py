"""Judged probes put in order: which figures of a card belong together and how far each is off its reference."""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from agent.model.probe import ProbeName, ProbeRecord
from agent.model.reference import Circumstances, Reference, circumstances_of, current_reference, series_of

Line = tuple[str, str]
"""Probe and data type: figures of one line follow each other, whatever the shape and the software."""

HOT_TRIGGERS: Final = ("burnin", "bench")
"""Runs within a long load: the card is hot, so they say nothing of one that starts cold."""
ROBUST_SIGMA: Final = 1.4826
"""Standard deviations a median absolute deviation stands for, of normal noise."""
JUDGED_PAIR: Final[tuple[ProbeName, ProbeName]] = ("matmul", "resnet50")
"""The probes whose figures a run judges, in the order in which it makes them."""
PAIR_S: Final = 120.0
"""Figures of one run lie closer together."""
MOST_CORRECTION: Final = 0.015
"""Temperature explains at most this share of a figure."""


class Measurement(msgspec.Struct, frozen=True):
    """One judged figure against the reference that counts for it; shares of the reference, -0.05 is 5 % slower."""

    record: ProbeRecord
    reference: Reference
    deviation: float
    corrected: float
    """The same without what the card's temperature explains."""
    partner: Reference | None = None
    """The other figure's reference where the deviations are the mean of two; record and reference are the slower's."""

    @property
    def wall_s(self) -> float:
        """Return when it was made."""
        return self.record.wall_s


def lines(records: Iterable[ProbeRecord]) -> dict[Line, list[ProbeRecord]]:
    """Return the records that may be compared, by line, oldest first, in whatever order they come."""
    by_line: dict[Line, list[ProbeRecord]] = {}
    for record in sorted((one for one in records if is_comparable(one)), key=lambda one: one.wall_s):
        by_line.setdefault((record.result.probe, record.result.dtype), []).append(record)
    return by_line


def is_comparable(record: ProbeRecord) -> bool:
    """Return whether a record's value tells how fast the card is: judged, alone on it, not amid a long load."""
    value = record.result.value
    if record.result.status != "ok" or not record.judged or record.trigger in HOT_TRIGGERS:
        return False
    if record.attribution is not None and record.attribution.contended:
        return False
    return value is not None and math.isfinite(value) and value > 0


def usable_reference(record: ProbeRecord, references: Sequence[Reference]) -> Reference | None:
    """Return the undisputed reference that counts for a record.

    Where a card's power limit was lowered, the one made under the higher limit counts: what the limit
    takes from a card makes it slow. Any other change of circumstances leaves a reference stale, not used.
    """
    series, circumstances = series_of(record.result), circumstances_of(record)
    exact = current_reference(tuple(references), record.uuid, series, circumstances)
    if exact is not None and not exact.disputed:
        return exact
    above = [
        reference
        for reference in references
        if (reference.uuid, reference.series) == (record.uuid, series)
        and not reference.disputed
        and _lowered(circumstances, reference.circumstances)
    ]
    highest = max(above, key=lambda reference: reference.power_limit_watts or 0.0, default=None)
    return highest and current_reference(tuple(above), record.uuid, series, highest.circumstances)


def measure(records: Iterable[ProbeRecord], references: Sequence[Reference]) -> list[Measurement]:
    """Return the comparable records that have a usable reference, with their deviations, in their order."""
    known: dict[tuple[object, Circumstances], Reference | None] = {}
    measured = []
    for record in records:
        key = (series_of(record.result), circumstances_of(record))
        if key not in known:
            known[key] = usable_reference(record, references)
        reference = known[key]
        if reference is not None and record.result.value is not None:
            deviation = record.result.value / reference.median - 1.0
            measured.append(Measurement(record, reference, deviation, deviation - expected_by_heat(record, reference)))
    return measured


def means(products: Sequence[Measurement], steps: Sequence[Measurement]) -> tuple[Measurement, ...]:
    """Return the mean of both figures of each run that has both, oldest first."""
    times = [one.wall_s for one in products]
    found = []
    for number, step in enumerate(steps):
        before_s = steps[number - 1].wall_s if number else -math.inf
        index = bisect_left(times, step.wall_s) - 1
        if index >= 0 and times[index] > max(before_s, step.wall_s - PAIR_S):
            found.append(_mean(products[index], step))
    return tuple(found)


def _mean(one: Measurement, other: Measurement) -> Measurement:
    slower, faster = sorted((one, other), key=lambda measured: measured.deviation)
    return Measurement(
        slower.record,
        slower.reference,
        (one.deviation + other.deviation) / 2.0,
        (one.corrected + other.corrected) / 2.0,
        faster.reference,
    )


def expected_by_heat(record: ProbeRecord, reference: Reference) -> float:
    """Return the deviation that the card's temperature explains, within the range the reference knows."""
    temperature = record.attribution.temperature_max_celsius if record.attribution else None
    low, middle, high = (
        reference.temperature_min_celsius,
        reference.temperature_median_celsius,
        reference.temperature_max_celsius,
    )
    if temperature is None or low is None or middle is None or high is None:
        return 0.0
    explained = reference.slope_per_kelvin * (min(max(temperature, low), high) - middle)
    return min(max(explained, -MOST_CORRECTION), MOST_CORRECTION)


def _lowered(now: Circumstances, then: Circumstances) -> bool:
    """Return whether the power limit is lower now and all else is as it was."""
    return (
        now[:3] == then[:3]
        and now.power_limit_watts is not None
        and then.power_limit_watts is not None
        and now.power_limit_watts < then.power_limit_watts
    )
