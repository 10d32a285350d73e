"""Retired pages: how cards before row remapping put bad memory aside."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import CONFIRM_S, confirmed
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "retired_pages"


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``faulty`` with cause ``too_many`` or ``pending``."""
    spans = [view.recent.covered(key, CONFIRM_S) for key in (keys.RETIRED_SINGLE_BIT, keys.RETIRED_DOUBLE_BIT)]
    pages = sum(min(values) for values in spans if values)
    limit = thresholds.memory.retired_pages
    if pages >= limit:
        return Conclusion(
            state="faulty",
            cause="too_many",
            summary=f"{pages:.0f} pages of the card's memory are retired.",
            next_action="Have the card replaced: the table of retired pages is nearly full.",
            evidence={"pages": pages, "threshold_pages": float(limit)},
        )
    if confirmed(view.recent, keys.RETIRED_PENDING) is not None:
        return Conclusion(
            state="faulty",
            cause="pending",
            summary="A bad page waits to be retired, which happens when the card is reset.",
            next_action="Drain the card at the next chance and reset it.",
            evidence={"pending": 1.0},
        )
    return None


RULE = CardRule(NAME, judge)
