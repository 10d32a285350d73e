"""PCIe replays: packets sent again because a bit was wrong. What is normal grows with speed and lanes."""

from types import MappingProxyType
from typing import Final

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "pcie_replay"
SPAN_S: Final = 600.0
LEAST_REPLAYS: Final = 20.0
"""Fewer in the span say nothing about a rate."""
BITS_PER_SECOND: Final = MappingProxyType({1: 2.5e9, 2: 5e9, 3: 8e9, 4: 16e9, 5: 32e9, 6: 64e9})
"""Bits a second and lane by generation."""


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``degraded`` with cause ``errors`` where replays exceed what the tolerated bit error rate makes.

    The error rate is taken over all bits a link carries, busy or not, at the highest speed and width of card
    and slot; so the threshold is the most that a link within its specification shows.
    """
    values = view.card.values
    generation, lanes = values.get(keys.PCIE_GENERATION_MAX), values.get(keys.PCIE_WIDTH_MAX)
    rate = view.minutes.rate(keys.PCIE_REPLAYS, SPAN_S)
    if rate is None or generation is None or lanes is None:
        return None
    if view.minutes.covered(keys.PCIE_REPLAYS, SPAN_S) is None:
        return None
    replays = rate * SPAN_S
    bits = BITS_PER_SECOND.get(int(generation), BITS_PER_SECOND[6]) * lanes * SPAN_S
    tolerated = max(LEAST_REPLAYS, thresholds.link.bit_error_rate * bits)
    if replays <= tolerated * (0.5 if NAME in view.held else 1.0):
        return None
    return Conclusion(
        state="degraded",
        cause="errors",
        summary=f"The PCIe link sent {replays:.0f} packets again in 10 minutes; its rating allows {tolerated:.0f}.",
        next_action="Reseat the card, check riser and cabling; move the card to another slot to tell slot from card.",
        evidence={
            "replays": replays,
            "threshold_replays": tolerated,
            "window_seconds": SPAN_S,
            "generation": generation,
            "lanes": lanes,
        },
    )


RULE = CardRule(NAME, judge, inputs="minutes")
