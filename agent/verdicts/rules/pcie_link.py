"""PCIe link below what card and slot allow, under load only: an idle card trains its link down to save power."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import busy_ratio
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "pcie_link"
BUSY = 0.5
"""Mean utilisation from which the link should run at full speed."""


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``degraded`` with cause ``width`` or ``generation`` where the link stays low under load."""
    window_s = thresholds.link.window_s
    busy = busy_ratio(view, window_s)
    if busy is None or busy < BUSY * (0.8 if NAME in view.held else 1.0):
        return None
    for cause, now_key, most_key, word in (
        ("width", keys.PCIE_WIDTH, keys.PCIE_WIDTH_MAX, "lanes"),
        ("generation", keys.PCIE_GENERATION, keys.PCIE_GENERATION_MAX, "generation"),
    ):
        seen = view.recent.covered(now_key, window_s)
        most = view.card.values.get(most_key)
        if seen and most is not None and max(seen) < most:
            return Conclusion(
                state="degraded",
                cause=cause,
                summary=f"The PCIe link runs at {word} {max(seen):.0f} of {most:.0f} while the card is busy.",
                next_action="Reseat the card, check riser and slot, and the slot's settings in the firmware.",
                evidence={now_key: max(seen), most_key: most, "window_seconds": window_s, "utilization_ratio": busy},
            )
    return None


RULE = CardRule(NAME, judge)
