"""Why a card is slow, by the probe's own evidence: clocks, heat and power attribute, they never acquit."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from agent.model.probe import Attribution
from agent.model.reference import Reference
from agent.model.snapshot import Card
from agent.verdicts import keys
from agent.verdicts.measurements import Measurement

Cause = Literal["power_limit_below_default", "clocks_limited", "thermal", "pcie", "host_contention", "unexplained"]

CLOCK_LOSS: Final = 0.03
"""Share of the reference's clock that must be missing to explain a slowdown."""
LIMITED_SHARE: Final = 0.1
HOTTER_KELVIN: Final = 8.0
"""Above the hottest run of the reference."""
HOST_BUSY_SHARE: Final = 0.9
_CLOCK_REASONS: Final = ("applications_clocks", "sync_boost", "display_clocks")

WORDS: Final[Mapping[Cause, str]] = MappingProxyType(
    {
        "power_limit_below_default": "its power limit is below the default",
        "clocks_limited": "its clocks are held down by a setting",
        "thermal": "it runs hotter than it used to, at lower clocks",
        "pcie": "its PCIe link is narrower or slower than the card's best",
        "host_contention": "the host's CPUs were busy meanwhile",
        "unexplained": "clocks, heat, power and host do not explain it",
    }
)
ACTIONS: Final[Mapping[Cause, str]] = MappingProxyType(
    {
        "power_limit_below_default": "If it was not lowered on purpose: nvidia-smi -i GPU -pl DEFAULT.",
        "clocks_limited": "If they were not set on purpose: nvidia-smi -i GPU -rac, -rgc and -rmc.",
        "thermal": "Check inlet temperature, fans, filters and how the card sits.",
        "pcie": "Reseat the card or its riser and look at lspci -vv for the link's state.",
        "host_contention": "Find what keeps the CPUs busy, and probe again.",
        "unexplained": "Drain it, run `heatsoak probe matmul`, compare with its neighbours; if it is slow, replace it.",
    }
)


def cause_of(one: Measurement, card: Card) -> Cause:
    """Return what explains a slow measurement, the most certain first."""
    did = one.record.attribution
    if did is None:
        return "unexplained"
    if _power_limit_lowered(did, one.reference, card):
        return "power_limit_below_default"
    slower = _lost(did.sm_clock_median_hertz, one.reference.sm_clock_median_hertz)
    held = any(did.throttle_share.get(reason, 0.0) >= LIMITED_SHARE for reason in _CLOCK_REASONS)
    if _lost(did.memory_clock_median_hertz, one.reference.memory_clock_median_hertz) or (slower and held):
        return "clocks_limited"
    hottest = one.reference.temperature_max_celsius
    hotter = did.temperature_max_celsius is not None and hottest is not None
    if slower and hotter and (did.temperature_max_celsius or 0.0) >= (hottest or 0.0) + HOTTER_KELVIN:
        return "thermal"
    if _link_reduced(did, card):
        return "pcie"
    busy = did.host_cpu_share is not None and did.host_cpu_share >= HOST_BUSY_SHARE
    return "host_contention" if busy else "unexplained"


def evidence_of(one: Measurement) -> dict[str, float]:
    """Return the numbers behind a measurement, as far as they are known; a mean of two has no value of its own."""
    did = one.record.attribution
    figure = {"value": one.record.result.value, "reference": one.reference.median} if one.partner is None else {}
    numbers = {
        "deviation_ratio": one.deviation,
        **figure,
        "sm_clock_hertz": did.sm_clock_median_hertz if did else None,
        "reference_sm_clock_hertz": one.reference.sm_clock_median_hertz,
        "temperature_celsius": did.temperature_max_celsius if did else None,
        "reference_temperature_celsius": one.reference.temperature_median_celsius,
        "power_limit_watts": did.power_limit_watts if did else None,
    }
    return {name: number for name, number in numbers.items() if number is not None}


def _power_limit_lowered(did: Attribution, reference: Reference, card: Card) -> bool:
    limit = did.power_limit_watts
    usual = [card.values.get(keys.POWER_LIMIT_DEFAULT), reference.power_limit_watts]
    return limit is not None and any(watts is not None and limit < 0.99 * watts for watts in usual)


def _lost(now_hertz: float | None, then_hertz: float | None) -> bool:
    return now_hertz is not None and then_hertz is not None and now_hertz < (1.0 - CLOCK_LOSS) * then_hertz


def _link_reduced(did: Attribution, card: Card) -> bool:
    pairs = (
        (did.pcie_width_max, card.values.get(keys.PCIE_WIDTH_MAX)),
        (did.pcie_generation_max, card.values.get(keys.PCIE_GENERATION_MAX)),
    )
    return any(now is not None and best is not None and now < best for now, best in pairs)
