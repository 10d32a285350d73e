"""How a card's own reference comes about, and when one made after a change may take over from the one before."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

import msgspec

from agent.config.settings import DegradedSettings
from agent.model.probe import ProbeRecord
from agent.model.reference import (
    Circumstances,
    Origin,
    Reference,
    Series,
    circumstances_of,
    current_reference,
    series_of,
)
from agent.verdicts.measurements import Line, lines, measure, usable_reference
from agent.verdicts.track import follow

COLD_MARGIN_KELVIN: Final = 15.0
"""A run this much hotter than the coolest did not start from an idle card."""
LEAST_RANGE_KELVIN: Final = 3.0
"""Over a smaller range of temperatures their effect cannot be told from noise."""
STEEPEST_PER_KELVIN: Final = -0.004
"""No card loses more than this share of its throughput with each kelvin short of throttling."""
LEAST_FOR_SHIFT: Final = 5
"""Runs of another card after a change that tell what the change did to it."""
LEAST_CARDS_FOR_SHIFT: Final = 2
LEAST_FOR_RENEWAL: Final = 5
QUARTILE_SIGMAS: Final = 1.15
"""Within this many standard deviations lie three quarters of normal noise."""


def new_references(
    records: Iterable[ProbeRecord], references: Sequence[Reference], limits: DegradedSettings, now_wall_s: float
) -> tuple[Reference, ...]:
    """Return the references that the cards of one node have earned and not yet got.

    A card earns one for each series and circumstances of its latest judged run, once: it is frozen. Where
    the card had one before, the new one is compared with that and may come out ``disputed``.
    """
    by_card: dict[str, list[ProbeRecord]] = {}
    for record in records:
        by_card.setdefault(record.uuid, []).append(record)
    node = {uuid: lines(kept) for uuid, kept in by_card.items()}
    made = []
    for uuid, of_card in node.items():
        for line, runs in of_card.items():
            candidate = _earned(runs, references, limits, now_wall_s)
            if candidate is not None:
                others = {other: kept[line] for other, kept in node.items() if other != uuid and line in kept}
                made.append(admit(candidate, runs, others, references, limits))
    return tuple(made)


def _earned(
    runs: Sequence[ProbeRecord], references: Sequence[Reference], limits: DegradedSettings, now_wall_s: float
) -> Reference | None:
    latest = runs[-1]
    key = (series_of(latest.result), circumstances_of(latest))
    if current_reference(tuple(references), latest.uuid, *key) is not None or usable_reference(latest, references):
        return None
    clean = clean_runs([run for run in runs if (series_of(run.result), circumstances_of(run)) == key])
    window = first_window(clean, limits)
    return summary_of(window, now_wall_s) if window else None


def clean_runs(runs: Sequence[ProbeRecord]) -> list[ProbeRecord]:
    """Return the runs fit for a reference: by schedule, and not much hotter than the coolest of them.

    Runs on suspicion are left out because they come when a card looks slow.
    """
    scheduled = [run for run in runs if run.trigger == "schedule"]
    coolest = min((celsius for run in scheduled if (celsius := _temperature(run)) is not None), default=None)
    if coolest is None:
        return scheduled
    return [run for run in scheduled if (_temperature(run) or coolest) <= coolest + COLD_MARGIN_KELVIN]


def first_window(clean: Sequence[ProbeRecord], limits: DegradedSettings) -> list[ProbeRecord]:
    """Return the first runs in a row that are enough, span long enough and agree well enough; empty without."""
    for start in range(len(clean)):
        for end in range(start + limits.reference_runs, len(clean) + 1):
            window = list(clean[start:end])
            if window[-1].wall_s - window[0].wall_s < limits.reference_span_h * 3600.0:
                continue
            if _agree([run.result.value or 0.0 for run in window], limits.reference_noise):
                return window
            break
    return []


def _agree(values: Sequence[float], noise: float) -> bool:
    """Return whether three quarters of the values lie as near their median as noise of that deviation would.

    Not the median deviation: of a card that jumps between two speeds that is 0.
    """
    median = statistics.median(values)
    distances = sorted(abs(value - median) for value in values)
    return distances[3 * len(distances) // 4] <= QUARTILE_SIGMAS * noise * median


def renewed(runs: Sequence[ProbeRecord], limits: DegradedSettings, now_wall_s: float) -> Reference | None:
    """Return a reference of the latest clean runs under the latest circumstances, as an operator asks for it.

    None where fewer than ``LEAST_FOR_RENEWAL`` are known.
    """
    if not runs:
        return None
    key = (series_of(runs[-1].result), circumstances_of(runs[-1]))
    clean = clean_runs([run for run in runs if (series_of(run.result), circumstances_of(run)) == key])
    latest = clean[-limits.reference_runs :]
    return summary_of(latest, now_wall_s, origin="renewed") if len(latest) >= LEAST_FOR_RENEWAL else None


def summary_of(runs: Sequence[ProbeRecord], now_wall_s: float, origin: Origin = "learnt") -> Reference:
    """Return the reference that ``runs`` of one card, series and circumstances make."""
    last = runs[-1]
    values = [run.result.value or 0.0 for run in runs]
    median = statistics.median(values)
    temperatures = [celsius for run in runs if (celsius := _temperature(run)) is not None]
    return Reference(
        uuid=last.uuid,
        probe=last.result.probe,
        variant=last.result.variant,
        dtype=last.result.dtype,
        shape=last.result.shape,
        mode=last.result.mode,
        method_version=last.result.method_version,
        tensorflow=last.environment.tensorflow,
        driver=last.environment.driver,
        power_limit_watts=last.attribution.power_limit_watts if last.attribution else None,
        median=median,
        mad=statistics.median(abs(value - median) for value in values),
        unit=last.result.unit,
        runs=len(runs),
        first_wall_s=runs[0].wall_s,
        last_wall_s=last.wall_s,
        made_wall_s=now_wall_s,
        origin=origin,
        temperature_median_celsius=statistics.median(temperatures) if temperatures else None,
        temperature_min_celsius=min(temperatures, default=None),
        temperature_max_celsius=max(temperatures, default=None),
        slope_per_kelvin=slope_per_kelvin(runs, median),
        sm_clock_median_hertz=_median(run.attribution.sm_clock_median_hertz for run in runs if run.attribution),
        memory_clock_median_hertz=_median(run.attribution.memory_clock_median_hertz for run in runs if run.attribution),
    )


def slope_per_kelvin(runs: Sequence[ProbeRecord], median: float) -> float:
    """Return by which share of ``median`` a run is slower for each kelvin the card was warmer (never positive).

    The median of the slopes between all pairs of runs (Theil and Sen): outliers do not move it. 0 where the
    temperatures lie too close together to tell.
    """
    known = [(_temperature(run), (run.result.value or 0.0) / median) for run in runs]
    points = [(celsius, share) for celsius, share in known if celsius is not None]
    if not points or max(points)[0] - min(points)[0] < LEAST_RANGE_KELVIN:
        return 0.0
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in combinations(points, 2) if a[0] != b[0]]
    return min(0.0, max(STEEPEST_PER_KELVIN, statistics.median(slopes)))


def admit(
    candidate: Reference,
    runs: Sequence[ProbeRecord],
    others: Mapping[str, Sequence[ProbeRecord]],
    references: Sequence[Reference],
    limits: DegradedSettings,
) -> Reference:
    """Return ``candidate``, disputed unless it fits the reference the card had before, times the node's shift.

    ``runs`` are the card's of that line, ``others`` the other cards'. A card that was slow under the old
    reference needs the node's shift to be believed: the change may have made up for what it lost. Where
    shape or method changed and no other card tells the shift, only a card that was not slow is believed.
    """
    measured = [one for one in measure(runs, references) if one.wall_s < candidate.first_wall_s]
    before = latest_of_line(references, candidate.uuid, line_of(candidate))
    old = measured[-1].reference if measured else before
    if before is None or old is None:
        return candidate
    was_slow = before.degraded_before or follow(measured, limits).condemned
    shift = node_shift(candidate, old, others, references)
    same_kind = (candidate.series, candidate.method_version) == (old.series, old.method_version)
    if shift is None and (was_slow or not same_kind):
        fits = not was_slow
    else:
        fits = abs(candidate.median / (old.median * (shift or 1.0)) - 1.0) <= limits.continuity
    return msgspec.structs.replace(candidate, disputed=not fits, degraded_before=was_slow and not fits)


def node_shift(
    new: Reference, old: Reference, others: Mapping[str, Sequence[ProbeRecord]], references: Sequence[Reference]
) -> float | None:
    """Return by which factor the change moved the node's other cards, their median; None where too few tell."""
    factors = []
    for uuid, runs in others.items():
        before = current_reference(tuple(references), uuid, old.series, _of_card(old, uuid, references))
        after = [run.result.value for run in runs if _is_like(run, new.series, new.circumstances) and run.result.value]
        if before is not None and not before.disputed and len(after) >= LEAST_FOR_SHIFT:
            factors.append(statistics.median(after) / before.median)
    return statistics.median(factors) if len(factors) >= LEAST_CARDS_FOR_SHIFT else None


def latest_of_line(references: Iterable[Reference], uuid: str, line: Line) -> Reference | None:
    """Return the card's reference of a line that was made last, whatever its circumstances; None without one."""
    of_line = [reference for reference in references if reference.uuid == uuid and line_of(reference) == line]
    return max(of_line, key=lambda reference: reference.made_wall_s, default=None)


def line_of(reference: Reference) -> Line:
    """Return the line a reference belongs to."""
    return reference.probe, reference.dtype


def _of_card(old: Reference, uuid: str, references: Sequence[Reference]) -> Circumstances:
    """Return the circumstances that correspond to ``old`` on another card, whose power limit may differ."""
    same = (uuid, old.series, old.circumstances[:3])
    fitting = (one for one in references if (one.uuid, one.series, one.circumstances[:3]) == same)
    return next((reference.circumstances for reference in fitting), old.circumstances)


def _is_like(run: ProbeRecord, series: Series, circumstances: Circumstances) -> bool:
    """Return whether a run of another card was made the same way under the same software."""
    return series_of(run.result) == series and circumstances_of(run)[:3] == circumstances[:3]


def _temperature(run: ProbeRecord) -> float | None:
    return run.attribution.temperature_max_celsius if run.attribution else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
