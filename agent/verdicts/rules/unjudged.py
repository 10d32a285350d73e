"""A card about which no judged probe says anything now: it is neither healthy nor slow."""

from typing import Final

from agent.config.settings import VerdictSettings
from agent.verdicts.standing import Standing, standings
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "unjudged"
_STALE_ACTION: Final = (
    "Leave it idle until its next scheduled probe, or run `heatsoak probe --quick` between two jobs "
    "(docs/deploy.md, Who holds a card)."
)


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``unknown``: ``not_probed`` yet, ``stale``, ``learning`` its reference, or that one is ``disputed``."""
    limits = thresholds.degraded
    found = standings(view, limits)
    if not found:
        return _unknown("not_probed", "No probe of this card could be judged yet.", _STALE_ACTION)
    age_h = (view.now_wall_s - max(one.latest.wall_s for one in found.values())) / 3600.0
    if age_h > limits.stale_h:
        return _unknown("stale", f"The last judged probe is {age_h / 24:.0f} days old.", _STALE_ACTION, age_hours=age_h)
    open_lines = [one for one in found.values() if not one.compared]
    disputed = [one for one in open_lines if one.disputed]
    if disputed:
        return _unknown(
            "reference_disputed",
            f"{_titles(disputed)}: since driver, TensorFlow or method changed its figures do not fit what they were.",
            "Compare it with its neighbours; if it is as it should be: `heatsoak reference renew`.",
        )
    if open_lines:
        return _unknown(
            "learning",
            f"{_titles(open_lines)}: too few clean runs for a reference under this driver and TensorFlow.",
            "None: it takes about a day of hourly probes.",
            runs_needed=float(limits.reference_runs),
            hours_needed=limits.reference_span_h,
        )
    return None


def _unknown(cause: str, summary: str, next_action: str, **evidence: float) -> Conclusion:
    return Conclusion(state="unknown", cause=cause, summary=summary, next_action=next_action, evidence=evidence)


def _titles(standing: list[Standing]) -> str:
    return ", ".join(f"{one.line[0]} {one.line[1]}" for one in standing)


RULE = CardRule(NAME, judge, inputs="minutes")
