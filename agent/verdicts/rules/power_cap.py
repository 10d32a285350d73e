"""Power cap: the card works at its power limit. That is how a loaded card runs; it informs only."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import busy_ratio, held_share
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "power_cap"
SHARE = 0.5
"""Share of the window from which the cap is worth a word."""
LOWERED = 0.97
"""Share of the default limit below which somebody has lowered the limit."""


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``ok`` with cause ``default_limit`` or ``lowered_limit`` while the power limit sets the clocks."""
    window_s = thresholds.throttle.window_s
    busy = busy_ratio(view, window_s)
    if busy is None or busy < thresholds.throttle.busy_ratio:
        return None
    share = held_share(view.recent, "sw_power_cap", window_s)
    if share is None or share < SHARE:
        return None
    limit_watts = view.card.values.get(keys.POWER_LIMIT)
    default_watts = view.card.values.get(keys.POWER_LIMIT_DEFAULT)
    lowered = limit_watts is not None and default_watts is not None and limit_watts < LOWERED * default_watts
    evidence = {"capped_ratio": share, "window_seconds": window_s}
    if limit_watts is not None:
        evidence["power_limit_watts"] = limit_watts
    if default_watts is not None:
        evidence["power_limit_default_watts"] = default_watts
    return Conclusion(
        state="ok",
        cause="lowered_limit" if lowered else "default_limit",
        summary=(
            f"The card works at its power limit, which is set to {limit_watts:.0f} W instead of {default_watts:.0f} W."
            if lowered
            else "The card works at its power limit, as a fully loaded card does."
        ),
        next_action="Raise the power limit if the lower one is not wanted." if lowered else "Nothing to do.",
        evidence=evidence,
    )


RULE = CardRule(NAME, judge)
