"""NVLink: links that are down while the peers' are up, and errors on those that are up."""

import statistics

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import CONFIRM_S
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "nvlink"
SPAN_S = 3600.0


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``degraded`` with cause ``links_down`` or ``errors``."""
    return _links_down(view) or _errors(view, thresholds)


def _links_down(view: CardView) -> Conclusion | None:
    """Return a conclusion where the card has fewer links up than most of its peers have."""
    mine = view.recent.covered(keys.NVLINK_ACTIVE, CONFIRM_S)
    theirs = [peer.card.values[keys.NVLINK_ACTIVE] for peer in view.peers if keys.NVLINK_ACTIVE in peer.card.values]
    if not mine or not theirs:
        return None
    usual = statistics.median_low(theirs)
    if max(mine) >= usual:
        return None
    return Conclusion(
        state="degraded",
        cause="links_down",
        summary=f"{max(mine):.0f} NVLink links are up, on the card's peers {usual:.0f}.",
        next_action="Reset the card; check bridges or baseboard, and the fabric manager's log.",
        evidence={"active_links": max(mine), "peers_active_links": usual},
    )


def _errors(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return a conclusion where the links' errors of the last hour exceed what is tolerated."""
    limit = thresholds.link.nvlink_errors_per_hour
    increases = [view.minutes.increase(key, SPAN_S) for key in keys.NVLINK_ERRORS]
    errors = sum(increase for increase in increases if increase is not None)
    if errors <= limit * (0.5 if NAME in view.held else 1.0):
        return None
    return Conclusion(
        state="degraded",
        cause="errors",
        summary=f"{errors:.0f} NVLink errors in the last hour.",
        next_action="Reset the card; if the errors come back, reseat it and check bridges or baseboard.",
        evidence={"errors": errors, "threshold_errors": limit, "window_seconds": SPAN_S},
    )


RULE = CardRule(NAME, judge, inputs="minutes")
