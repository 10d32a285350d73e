"""Thermal resistance: how many degrees each watt costs, against the card's own past.

It rises when paste dries out, a heat sink loosens, filters clog, a fan or pump weakens: months before the
card throttles. The idle point is taken beside the load point, so that room temperature and the idle power of
an open context cancel out.
"""

import statistics
from collections.abc import Sequence
from typing import Final

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardRule, CardView, Conclusion, ResistanceSample, Window

NAME = "thermal_resistance"
STEADY_S: Final = 30.0
LEAST_SAMPLES: Final = 10
POWER_SPREAD: Final = 0.05
"""Largest standard deviation of power, as a share of its mean, of a steady load."""
SETTLED_CELSIUS: Final = 0.6
"""Largest change of temperature from the first to the second half of a steady load."""
LEAST_RISE_WATTS: Final = 100.0
"""Least load above idle; a smaller one measures the sensor's steps."""
IDLE_UTILIZATION: Final = 0.005
BASELINE: Final = 10
"""The card's first samples, which are what it is compared with."""
RECENT: Final = 3
SAME_POWER: Final = 0.25
"""Samples are comparable within this share of power: fans answer to load."""


def measure(recent: Window, minutes: Window, wall_s: float) -> ResistanceSample | None:
    """Return the thermal resistance of the current load; None unless load and idle point are steady."""
    power_watts = recent.covered(keys.POWER, STEADY_S)
    temperature_celsius = recent.covered(keys.TEMPERATURE, STEADY_S)
    if not power_watts or not temperature_celsius or len(temperature_celsius) < LEAST_SAMPLES:
        return None
    mean_watts = statistics.fmean(power_watts)
    if statistics.pstdev(power_watts) > POWER_SPREAD * mean_watts:
        return None
    half = len(temperature_celsius) // 2
    early, late = statistics.fmean(temperature_celsius[:half]), statistics.fmean(temperature_celsius[half:])
    if abs(late - early) > SETTLED_CELSIUS:
        return None
    idle = idle_point(minutes)
    if idle is None or mean_watts - idle[0] < LEAST_RISE_WATTS:
        return None
    return ResistanceSample(wall_s, (late - idle[1]) / (mean_watts - idle[0]), mean_watts)


def idle_point(minutes: Window) -> tuple[float, float] | None:
    """Return power and temperature of the latest settled idle minute; None where there was none."""
    columns = [minutes.columns.get(key) for key in (keys.UTILIZATION, keys.POWER, keys.TEMPERATURE)]
    if any(column is None for column in columns):
        return None
    rows = list(zip(*(column for column in columns if column is not None), strict=True))
    for before, row in zip(reversed(rows[:-1]), reversed(rows[1:]), strict=True):
        idle = before[0] <= IDLE_UTILIZATION and row[0] <= IDLE_UTILIZATION
        if idle and abs(row[2] - before[2]) <= SETTLED_CELSIUS:
            return row[1], row[2]
    return None


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``ok`` with cause ``rising`` where the latest loads cost more degrees a watt than the first did."""
    samples = view.resistances
    if len(samples) < BASELINE + RECENT:
        return None
    latest = samples[-RECENT:]
    baseline = _comparable(samples[:BASELINE], statistics.median(s.power_watts for s in latest))
    if len(baseline) < BASELINE // 2:
        return None
    usual = statistics.median(baseline)
    now = statistics.median(sample.kelvin_per_watt for sample in latest)
    scatter = 1.4826 * statistics.median(abs(value - usual) for value in baseline)
    rise = thresholds.throttle.resistance_rise * (0.8 if NAME in view.held else 1.0)
    if now - usual <= max(rise * usual, 4 * scatter):
        return None
    return Conclusion(
        state="ok",
        cause="rising",
        summary=f"Each watt now heats the card {now / usual - 1:.0%} more than it used to.",
        next_action="Clean filters and fins, check fans or coolant flow; renew the thermal paste at the next service.",
        evidence={
            "resistance_kelvin_per_watt": now,
            "usual_kelvin_per_watt": usual,
            "threshold_ratio": thresholds.throttle.resistance_rise,
        },
        suspect=True,
    )


def _comparable(samples: Sequence[ResistanceSample], power_watts: float) -> list[float]:
    """Return the resistances of the samples at about this power."""
    return [s.kelvin_per_watt for s in samples if abs(s.power_watts - power_watts) <= SAME_POWER * power_watts]


RULE = CardRule(NAME, judge, inputs="minutes")
