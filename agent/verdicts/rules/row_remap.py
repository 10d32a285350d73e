"""Row remapping: a memory row that waits to be replaced by a spare, or could not be."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import confirmed
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "row_remap"


def judge(view: CardView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``faulty`` with cause ``failed`` or ``pending``."""
    if confirmed(view.recent, keys.REMAP_FAILED) is not None:
        return Conclusion(
            state="faulty",
            cause="failed",
            summary="A bad memory row could not be remapped: the spares are used up.",
            next_action="Take the card out of service and have it replaced.",
            evidence={"remap_failed": 1.0},
        )
    if confirmed(view.recent, keys.REMAP_PENDING) is not None:
        return Conclusion(
            state="faulty",
            cause="pending",
            summary="A bad memory row waits to be remapped, which happens when the card is reset.",
            next_action="Drain the card at the next chance and reset it.",
            evidence={"remap_pending": 1.0},
        )
    return None


RULE = CardRule(NAME, judge)
