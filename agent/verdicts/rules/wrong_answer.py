"""Wrong answers: the card computed something else than arithmetic says."""

from agent.config.settings import VerdictSettings
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "wrong_answer"
LATEST = 48
"""Finished probes that are looked at: about a day."""
CONFIRMED = 2


def judge(view: CardView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``faulty`` after two wrong answers in about a day, ``ok`` and suspect after one."""
    said = sorted(
        (record for record in view.probes if record.result.status in ("ok", "wrong_answer")), key=lambda r: r.wall_s
    )[-LATEST:]
    wrong = [record for record in said if record.result.status == "wrong_answer"]
    if not wrong:
        return None
    faulty = len(wrong) >= CONFIRMED
    newest = wrong[-1].result
    return Conclusion(
        state="faulty" if faulty else "ok",
        cause="confirmed" if faulty else "once",
        summary=f"{len(wrong)} of the last {len(said)} probes were wrong ({newest.detail or newest.reason}).",
        next_action=(
            "Take the card out of service: it corrupts data silently. Keep the report for its replacement."
            if faulty
            else "The card is probed again soon; hold back work that cannot be checked until then."
        ),
        evidence={"wrong_answers": float(len(wrong)), "probes": float(len(said)), "threshold": float(CONFIRMED)},
        suspect=not faulty,
    )


RULE = CardRule(NAME, judge, inputs="probes")
