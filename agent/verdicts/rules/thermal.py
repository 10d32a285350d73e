"""Thermal throttling: heat, not the work or its power limit, holds a busy card's clocks down."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import busy_ratio, throttle_share
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "thermal_throttling"


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``throttled`` with cause ``hw_thermal`` or ``sw_thermal`` while heat slows a busy card."""
    limits = thresholds.throttle
    hard = throttle_share(view, thresholds, NAME, "hw_thermal")
    share = hard or throttle_share(view, thresholds, NAME, "sw_thermal")
    if share is None:
        return None
    temperature_celsius = view.recent.mean(keys.TEMPERATURE, limits.window_s)
    evidence = {
        "throttled_ratio": share,
        "threshold_ratio": limits.share,
        "window_seconds": limits.window_s,
        "utilization_ratio": busy_ratio(view, limits.window_s) or 0.0,
    }
    if temperature_celsius is not None:
        evidence["temperature_celsius"] = temperature_celsius
    hot = f" at {temperature_celsius:.0f} °C" if temperature_celsius is not None else ""
    return Conclusion(
        state="throttled",
        cause="hw_thermal" if hard else "sw_thermal",
        summary=f"Heat held the clocks down for {share:.0%} of the last {limits.window_s:.0f} s of work{hot}.",
        next_action="Check inlet temperature, fans and filters, the neighbours in the rack and how the card sits.",
        evidence=evidence,
    )


RULE = CardRule(NAME, judge)
