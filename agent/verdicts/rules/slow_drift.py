"""A small slowdown that lasts: summed up over hours, with the node's and the season's share taken out."""

from agent.config.settings import DegradedSettings, VerdictSettings
from agent.verdicts.causes import ACTIONS, WORDS, cause_of, evidence_of
from agent.verdicts.standing import (
    LEAST_PEERS,
    Neighbours,
    Standing,
    against_peers,
    drift_is_shared,
    followed,
    peers_of,
)
from agent.verdicts.track import Track
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "slow_drift"


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``degraded`` while the summed deviations say so and the card's level does not already."""
    limits = thresholds.degraded
    own = followed(view, limits)
    neighbours = peers_of(view, limits) if own else []
    for one in own.values():
        if one.compared:
            found = _on_line(one, neighbours, view, limits)
            if found is not None:
                return found
    return None


def _on_line(one: Standing, neighbours: Neighbours, view: CardView, limits: DegradedSettings) -> Conclusion | None:
    peers = [peer[one.line] for peer in neighbours if one.line in peer]
    track = against_peers(one, peers, limits)
    if not track.drift.drifting or one.track.level.degraded:
        return None
    if len(peers) < LEAST_PEERS and drift_is_shared(one, neighbours):
        return None  # with more peers the node's share is out of the track already
    return _drifting(one, track, view, limits)


def _drifting(one: Standing, track: Track, view: CardView, limits: DegradedSettings) -> Conclusion:
    last = one.measurements[-1]
    since = [
        measured.deviation for measured in one.measurements if measured.wall_s >= (track.drift.onset_wall_s or 0.0)
    ]
    mean = sum(since) / len(since)
    cause = cause_of(last, view.card)
    return Conclusion(
        state="degraded",
        cause=cause,
        summary=f"{one.line[0]} {one.line[1]} has been {-mean:.1%} below this card's own reference; {WORDS[cause]}.",
        next_action=ACTIONS[cause],
        evidence=evidence_of(last)
        | {
            "mean_deviation_ratio": mean,
            "runs": float(len(since)),
            "score_ratio": track.drift.score,
            "threshold_ratio": limits.drift_limit,
        },
    )


RULE = CardRule(NAME, judge, inputs="probes")
