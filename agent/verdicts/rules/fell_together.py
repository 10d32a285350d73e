"""A card that got slow together with half of its node: nothing is proven against the card, or for it."""

from agent.config.settings import VerdictSettings
from agent.verdicts.causes import evidence_of
from agent.verdicts.standing import Standing, drift_is_shared, followed, level_is_shared, peers_of
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "fell_together"


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``unknown`` with cause ``level`` or ``drift`` while the card is slow as half of its neighbours are."""
    limits = thresholds.degraded
    own = [one for one in followed(view, limits).values() if one.track.level.onset_wall_s or one.track.drift.drifting]
    neighbours = peers_of(view, limits) if own else []
    for one in own:
        if level_is_shared(one, neighbours):
            return _together(one, "level", suspect=one.track.level.suspected)
        if drift_is_shared(one, neighbours):
            return _together(one, "drift", suspect=False)
    return None


def _together(one: Standing, cause: str, *, suspect: bool) -> Conclusion:
    last = one.measurements[-1]
    title = f"{one.line[0]} {one.line[1]}"
    return Conclusion(
        state="unknown",
        cause=cause,
        summary=f"{title} is {-last.deviation:.1%} below this card's own reference, as on its neighbours.",
        next_action="See the node's verdict: look for what changed on the host, not for a bad card.",
        evidence=evidence_of(last),
        suspect=suspect,
    )


RULE = CardRule(NAME, judge, inputs="probes")
