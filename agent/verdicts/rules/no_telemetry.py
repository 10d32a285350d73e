"""Nothing is known of the card: neither healthy nor ill."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "no_telemetry"
TICKS = 3


def judge(view: CardView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``unknown`` with cause ``starting`` before the third tick, ``silent`` after three without values."""
    if view.paused or view.card.lost:
        return None
    ticks = view.recent.tail(keys.SILENT, TICKS)
    if ticks is None:
        return Conclusion(
            state="unknown",
            cause="starting",
            summary="The card has been watched for a moment only.",
            next_action="Wait a few seconds.",
        )
    if not all(ticks) and not (NAME in view.held and any(ticks)):
        return None
    return Conclusion(
        state="unknown",
        cause="silent",
        summary="The driver names the card but none of its readings is fresh.",
        next_action="See whether nvidia-smi answers, and what the agent logs about its reader.",
    )


RULE = CardRule(NAME, judge)
