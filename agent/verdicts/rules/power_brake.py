"""Power brake: the machine's power supply asks the card to slow down."""

from agent.config.settings import VerdictSettings
from agent.verdicts.rules.common import throttle_share
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "power_brake"


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``throttled`` with cause ``power_brake`` while the external brake signal slows a busy card."""
    limits = thresholds.throttle
    share = throttle_share(view, thresholds, NAME, "hw_power_brake")
    if share is None:
        return None
    return Conclusion(
        state="throttled",
        cause="power_brake",
        summary=f"The external power brake held the clocks down for {share:.0%} of the last {limits.window_s:.0f} s.",
        next_action="Check power supplies, their cabling and redundancy, and the power cap of the rack or chassis.",
        evidence={"throttled_ratio": share, "threshold_ratio": limits.share, "window_seconds": limits.window_s},
    )


RULE = CardRule(NAME, judge)
