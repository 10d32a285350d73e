"""What a card did while it was measured, and whether the value may then be held against it."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import Final

import msgspec

from agent.model.probe import Attribution, ProbeResult
from agent.model.snapshot import Card
from agent.probes.host_cpu import HostUse, others_share

SLOWING_REASONS: Final = ("hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake")
"""Throttle reasons under which a value tells of heat or power supply, not of the card."""
MOST_SLOWED_SHARE: Final = 0.02
"""Above this share of the window a value is not judged; below it, it moves a value by less than its noise."""
MOST_HOST_SHARE: Final = 0.05
"""Above this share of host time in a step a value measures the host."""
LEAST_SAMPLES: Final = 5
"""Fewer samples in the judged window leave its circumstances unknown."""
_JUDGED: Final = {("matmul", "bf16"), ("resnet50", "bf16")}
_OTHER_STEPS: Final = frozenset({"replicas", "accumulate"})
"""Figures that tell of another step than the judged one."""
_THROTTLE: Final = "throttle_active_"


class CardSample(msgspec.Struct, frozen=True):
    """A run's first card at one moment, and whether a tenant was on any of its cards."""

    monotonic_s: float
    card: Card
    tenant: bool = False
    host: HostUse | None = None
    """The host's CPU time by then; not taken with every sample."""


def attribute(samples: Sequence[CardSample], start_s: float | None, end_s: float | None) -> Attribution | None:
    """Sum up what the card did from ``start_s`` to ``end_s`` on the monotonic clock.

    A tenant at any moment of the run counts, not only within the window: it may have come between two
    samples. None where no sample was taken at all.
    """
    if not samples:
        return None
    window = (start_s, end_s) if start_s is not None and end_s is not None else (1.0, 0.0)
    of_window = [sample for sample in samples if window[0] <= sample.monotonic_s <= window[1]]
    inside = [sample.card for sample in of_window]
    power = _values(inside, "power_instant_watts") or _values(inside, "power_watts")
    return Attribution(
        samples=len(inside),
        sm_clock_median_hertz=_apply(median, _values(inside, "clock_sm_hertz")),
        memory_clock_median_hertz=_apply(median, _values(inside, "clock_memory_hertz")),
        temperature_max_celsius=_apply(max, _values(inside, "temperature_celsius")),
        power_mean_watts=_apply(fmean, power),
        power_limit_watts=_apply(median, _values(inside, "power_limit_enforced_watts")),
        memory_used_peak_bytes=max(_values([s.card for s in samples], "memory_used_bytes"), default=None),
        pcie_generation_max=max(_values([s.card for s in samples], "pcie_generation"), default=None),
        pcie_width_max=max(_values([s.card for s in samples], "pcie_width_lanes"), default=None),
        throttle_share=_throttle_shares(inside),
        contended=any(s.tenant for s in samples),
        host_cpu_share=others_share([sample.host for sample in of_window if sample.host is not None]),
    )


def busy_s(samples: Sequence[CardSample]) -> float:
    """Return for how many seconds of a run the card worked: its utilisation summed over time."""
    return sum(
        (later.monotonic_s - sample.monotonic_s) * later.card.values.get("utilization_ratio", 0.0)
        for sample, later in pairwise(samples)
    )


def efficiency(result: ProbeResult, attribution: Attribution | None, cards: int = 1) -> dict[str, float]:
    """Return one card's throughput per SM clock and per watt, as figures of the result; empty where unknown.

    ``cards`` share the result's value alike.
    """
    figures = {}
    if result.value is not None and attribution is not None:
        each = result.value / cards
        if attribution.sm_clock_median_hertz:
            figures["value_per_sm_clock"] = each / attribution.sm_clock_median_hertz
        if attribution.power_mean_watts:
            figures["value_per_watt"] = each / attribution.power_mean_watts
    return figures


def may_judge(result: ProbeResult, attribution: Attribution | None) -> bool:
    """Return whether a value may be compared with a reference.

    It is of a judged kind, from a card that was seen to be neither shared nor slowed down by heat or power
    supply during the window, and its steps do not measure the host.
    """
    if result.status != "ok" or attribution is None or (result.probe, result.dtype) not in _JUDGED:
        return False
    if result.variant or not _OTHER_STEPS.isdisjoint(result.figures):
        return False
    if attribution.contended or attribution.samples < LEAST_SAMPLES:
        return False
    host_share = result.timing.host_share if result.timing else None
    if host_share is not None and host_share >= MOST_HOST_SHARE:
        return False
    return all(attribution.throttle_share.get(reason, 0.0) <= MOST_SLOWED_SHARE for reason in SLOWING_REASONS)


def _throttle_shares(cards: Sequence[Card]) -> dict[str, float]:
    keys = {key for card in cards for key in card.values if key.startswith(_THROTTLE)}
    shares = {key.removeprefix(_THROTTLE): fmean(_values(cards, key)) for key in sorted(keys)}
    return {reason: share for reason, share in shares.items() if share > 0}


def _values(cards: Iterable[Card], key: str) -> list[float]:
    return [card.values[key] for card in cards if key in card.values]


def _apply(function: Callable[[Sequence[float]], float], values: Sequence[float]) -> float | None:
    return function(values) if values else None
