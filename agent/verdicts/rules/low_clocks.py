"""Low clocks that nothing explains."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import held_share
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "low_clocks"
BUSY = 0.5
"""Utilisation from which a card's clocks should be up."""
THROUGHOUT = 0.9
"""Share of the window in which it must be that busy: a card that was idle a moment ago had no need of clocks."""
EXPLANATIONS = (
    "applications_clocks",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal",
    "hw_thermal",
    "hw_power_brake",
    "display_clocks",
)
EXPLAINED = 0.3
"""Share of the window from which a reason explains low clocks."""


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``degraded`` where a busy card's clock is stuck near its floor, ``ok`` where it is merely low.

    Low clocks alone condemn no card, since throughput decides: they ask for a probe. A card that works at a
    fraction of its clock for minutes needs no probe to be slow.
    """
    limits = thresholds.throttle
    highest_hertz = view.card.values.get(keys.SM_CLOCK_MAX)
    clocks = view.recent.covered(keys.SM_CLOCK, limits.window_s)
    if not highest_hertz or not clocks or not _busy_throughout(view, limits.window_s):
        return None
    ratio = sum(clocks) / len(clocks) / highest_hertz
    allowed = limits.low_clock_ratio * (1.05 if NAME in view.held else 1.0)
    if ratio >= allowed:
        return None
    if any((held_share(view.recent, reason, limits.window_s) or 0.0) >= EXPLAINED for reason in EXPLANATIONS):
        return None
    stuck = ratio < limits.stuck_clock_ratio and _stuck(view, highest_hertz * limits.stuck_clock_ratio, limits.stuck_s)
    return Conclusion(
        state="degraded" if stuck else "ok",
        cause="stuck" if stuck else "unexplained",
        summary=f"The card is busy at {ratio:.0%} of its highest SM clock and the driver names no reason.",
        next_action=(
            "Drain the card and reset it; look for a locked clock (nvidia-smi -q -d CLOCK)."
            if stuck
            else "Look for a locked clock (nvidia-smi -q -d CLOCK); the next probe tells whether the card is slow."
        ),
        evidence={"clock_ratio": ratio, "threshold_ratio": limits.low_clock_ratio, "window_seconds": limits.window_s},
        suspect=True,
    )


def _stuck(view: CardView, below_hertz: float, span_s: float) -> bool:
    """Return whether the card was busy and its clock that low throughout the span."""
    clocks = view.recent.covered(keys.SM_CLOCK, span_s)
    return clocks is not None and max(clocks) < below_hertz and _busy_throughout(view, span_s)


def _busy_throughout(view: CardView, span_s: float) -> bool:
    """Return whether the card was busy all the time of the span."""
    share = view.recent.share(keys.UTILIZATION, span_s, BUSY)
    return share is not None and share >= THROUGHOUT


RULE = CardRule(NAME, judge)
