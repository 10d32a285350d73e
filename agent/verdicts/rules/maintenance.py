"""An operator has paused the card."""

from agent.config.settings import VerdictSettings
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "maintenance"


def judge(view: CardView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``maintenance`` while the card is paused."""
    if not view.paused:
        return None
    return Conclusion(
        state="maintenance",
        cause="paused",
        summary="An operator has paused the card.",
        next_action="Resume it (`heatsoak resume`) when the work on it is done.",
    )


RULE = CardRule(NAME, judge)
