"""Uncorrected ECC errors since the driver was loaded or the card reset."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import confirmed
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "ecc_uncorrected"


def judge(view: CardView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``faulty`` while the volatile count is not 0; a reset of the card clears it."""
    errors = confirmed(view.recent, keys.ECC_UNCORRECTED)
    if errors is None:
        return None
    return Conclusion(
        state="faulty",
        cause="uncorrected",
        summary=f"{errors:.0f} memory errors that ECC could not correct since the card's last reset.",
        next_action="Drain the card and reset it; replace it if the errors come back.",
        evidence={"errors": errors, "threshold_errors": 1.0},
    )


RULE = CardRule(NAME, judge)
