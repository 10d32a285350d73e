"""A card that fell behind its own reference, confirmed on runs in a row; its neighbours are the witnesses."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from agent.config.settings import DegradedSettings, VerdictSettings
from agent.verdicts.causes import ACTIONS, WORDS, cause_of, evidence_of
from agent.verdicts.measurements import Line
from agent.verdicts.standing import Neighbours, Standing, followed, level_is_shared, peers_of, witnesses_of
from agent.verdicts.track import threshold
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "degraded"
SUSPECTED: Final = "suspected"
WITNESS: Final = "witness"
DISPUTED: Final = "reference_disputed"
DOUBT_S: Final = 6 * 3600.0
ROUND_GAP_S: Final = 1500.0
"""Runs on suspicion further apart than this belong to two rounds."""


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``degraded`` once a slowdown is confirmed; ``ok`` and suspect before, or to be a witness of another's.

    A card that fell together with half of the node's is left to ``fell_together``.
    """
    limits = thresholds.degraded
    own = followed(view, limits)
    neighbours = peers_of(view, limits)
    found = [conclusion for one in own.values() if (conclusion := _on_line(one, neighbours, view, limits)) is not None]
    if found:
        return min(found, key=lambda conclusion: conclusion.state != "degraded")
    return _as_witness(own, neighbours, limits)


def _on_line(one: Standing, neighbours: Neighbours, view: CardView, limits: DegradedSettings) -> Conclusion | None:
    if one.carried:
        return _carried(one)
    level = one.track.level
    if not one.compared or level.onset_wall_s is None or level_is_shared(one, neighbours):
        return None
    if not level.degraded:
        return _suspected(one, limits)
    seen_since = witnesses_of(one, neighbours, level.onset_wall_s)
    waited = view.now_wall_s - level.onset_wall_s > limits.witness_s
    return _degraded(one, view, limits) if seen_since or waited or not neighbours else _suspected(one, limits)


def _degraded(one: Standing, view: CardView, limits: DegradedSettings) -> Conclusion:
    slow = next(measured for measured in reversed(one.measurements) if measured.deviation <= -limits.drop * 0.7)
    cause = cause_of(slow, view.card)
    return Conclusion(
        state="degraded",
        cause=cause,
        summary=f"{_title(one)} is {-slow.deviation:.1%} below this card's own reference; {WORDS[cause]}.",
        next_action=ACTIONS[cause],
        evidence=evidence_of(slow) | {"threshold_ratio": -threshold(slow.reference, limits, slow.partner)},
    )


def _carried(one: Standing) -> Conclusion:
    last = one.track.last
    return Conclusion(
        state="degraded",
        cause=DISPUTED,
        summary=f"{_title(one)} was slow before driver, TensorFlow or method changed; nothing since proves it well.",
        next_action="Compare it with its neighbours; if it is as it should be: `heatsoak reference renew`.",
        evidence=evidence_of(last) if last else {},
    )


def _suspected(one: Standing, limits: DegradedSettings) -> Conclusion:
    last = one.measurements[-1]
    return Conclusion(
        state="ok",
        cause=SUSPECTED,
        summary=f"{_title(one)} was {-last.deviation:.1%} below this card's own reference; not confirmed.",
        next_action="None: the card is probed again within minutes.",
        evidence=evidence_of(last)
        | {
            "slow_runs": float(one.track.level.slow_runs),
            "threshold_ratio": -threshold(last.reference, limits, last.partner),
        },
        suspect=_may_ask(one, limits),
    )


def _may_ask(one: Standing, limits: DegradedSettings) -> bool:
    """Return whether another run on suspicion is worth while: not where some have come to nothing lately.

    A card that hovers about the threshold is left to the drift, which needs runs hours apart.
    """
    onset_s = one.track.level.onset_wall_s or 0.0
    asked = [
        measured.wall_s
        for measured in one.measurements
        if measured.record.trigger == "suspicion" and onset_s - DOUBT_S <= measured.wall_s < onset_s
    ]
    rounds = sum(later - earlier > ROUND_GAP_S for earlier, later in pairwise([0.0, *asked]))
    return rounds < limits.doubts


def _as_witness(own: Mapping[Line, Standing], neighbours: Neighbours, limits: DegradedSettings) -> Conclusion | None:
    """Return an information that asks for a probe where a neighbour is slow and this card was not measured since."""
    for peer in neighbours:
        for line, other in peer.items():
            onset_s = other.track.level.onset_wall_s
            if line not in own or onset_s is None or own[line].measured_since(onset_s):
                continue
            if other.track.level.suspected and _may_ask(other, limits):
                return Conclusion(
                    state="ok",
                    cause=WITNESS,
                    summary="A neighbour looks slow; this card is probed again to tell the card from the host.",
                    next_action="None.",
                    suspect=True,
                )
    return None


def _title(one: Standing) -> str:
    """Return what was measured, for people."""
    return f"{one.line[0]} {one.line[1]}"


RULE = CardRule(NAME, judge, inputs="probes")
