"""Corrected ECC errors: harmless one by one, telling when one card has many times what its peers have."""

import statistics

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardRule, CardView, Conclusion, Window

NAME = "ecc_corrected"
SPAN_S = 6 * 3600.0
LEAST_S = 600.0
"""History without which no rate is named."""

LEAST_ERRORS = 40
"""Fewer may be chance."""


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``ok`` with cause ``outlier`` where the hourly rate is high and far above the peers'.

    Without a peer the absolute rate decides. Information: the driver remaps rows that need it.
    """
    limits = thresholds.memory
    rate = hourly_rate(view.minutes)
    least = limits.corrected_per_hour * (0.5 if NAME in view.held else 1.0)
    if rate is None or rate < least or not enough(view.minutes):
        return None
    peers = [found for peer in view.peers if (found := hourly_rate(peer.minutes)) is not None]
    usual = statistics.median(peers) if peers else 0.0
    if rate < limits.corrected_times_peers * usual:
        return None
    return Conclusion(
        state="ok",
        cause="outlier",
        summary=f"ECC corrects {rate:.0f} errors an hour on this card, {usual:.0f} on its peers.",
        next_action="Watch for remapped rows; have the card tested at the next service if the rate stays.",
        evidence={
            "errors_per_hour": rate,
            "peers_errors_per_hour": usual,
            "threshold_errors_per_hour": limits.corrected_per_hour,
            "threshold_times_peers": limits.corrected_times_peers,
        },
        suspect=True,
    )


def hourly_rate(minutes: Window) -> float | None:
    """Return corrected errors an hour over the last hours; None below ten minutes of history."""
    rate = minutes.rate(keys.ECC_CORRECTED, SPAN_S)
    if rate is None or len(minutes.values(keys.ECC_CORRECTED, LEAST_S)) * minutes.step_s < LEAST_S:
        return None
    return rate * 3600.0


def enough(minutes: Window) -> bool:
    """Return whether there were errors enough to tell their rate from chance."""
    return (minutes.increase(keys.ECC_CORRECTED, SPAN_S) or 0.0) >= LEAST_ERRORS


RULE = CardRule(NAME, judge, inputs="minutes")
