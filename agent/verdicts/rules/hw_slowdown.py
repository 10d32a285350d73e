"""Hardware slowdown for which the driver names neither heat nor the power brake."""

from agent.config.settings import VerdictSettings
from agent.verdicts.rules.common import held_share, throttle_share
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "hw_slowdown"


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``throttled`` with cause ``hw_slowdown`` unless heat or the power brake explains it.

    Some drivers raise the general flag together with the particular one; old ones raise it alone.
    """
    limits = thresholds.throttle
    share = throttle_share(view, thresholds, NAME, "hw_slowdown")
    if share is None:
        return None
    named = max(held_share(view.recent, reason, limits.window_s) or 0.0 for reason in ("hw_thermal", "hw_power_brake"))
    if named >= share / 2:
        return None
    return Conclusion(
        state="throttled",
        cause="hw_slowdown",
        summary=f"The hardware held the clocks down for {share:.0%} of the last {limits.window_s:.0f} s of work.",
        next_action="Check the card's power connectors and supply, and its temperature; reseat the card if it stays.",
        evidence={"throttled_ratio": share, "threshold_ratio": limits.share, "window_seconds": limits.window_s},
    )


RULE = CardRule(NAME, judge)
