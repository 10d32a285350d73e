"""Wrong answers: the card computed something else than arithmetic says.

One is enough. The products are of whole numbers small enough to be exact in every data type, whatever the
order of summation, and the bound on random ones is derived, not estimated: a healthy card has no chance of
missing either, so that there is no noise to wait out. A card that was wrong once was wrong; right answers
since do not prove it well, as such faults come and go with heat and data.
"""

from typing import Final

from agent.config.settings import VerdictSettings
from agent.model.probe import ProbeRecord
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "wrong_answer"
ENOUGH: Final = 3
"""From so many on, no further probe is asked for."""


def judge(view: CardView, thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``faulty`` for ``wrong_answer_hold_h`` after a wrong answer.

    Where half of the node's cards, and at least two, are wrong under the same TensorFlow and driver, it is
    ``unknown``: one software that computes wrongly is likelier than many cards.
    """
    hold_s = thresholds.degraded.wrong_answer_hold_h * 3600.0
    wrong = _wrong(view, view.now_wall_s - hold_s)
    if not wrong:
        return None
    newest = wrong[-1]
    peers = [peer for peer in view.peers if peer.probes]
    alike = sum(_wrong_alike(peer, newest, view.now_wall_s - hold_s) for peer in peers)
    shared = alike >= 1 and 2 * (1 + alike) >= 1 + len(peers)
    return Conclusion(
        state="unknown" if shared else "faulty",
        cause="on_other_cards_too" if shared else newest.result.reason.partition(":")[0] or "unnamed",
        summary=f"{len(wrong)} of its probes computed a wrong answer ({newest.result.detail or newest.result.reason}).",
        next_action=(
            "Suspect TensorFlow or the driver first: run `heatsoak probe matmul` with another version of either."
            if shared
            else "Take the card out of service: it corrupts data silently. Have it replaced (`heatsoak probe matmul`)."
        ),
        evidence={"wrong_answers": float(len(wrong)), "hours_since": (view.now_wall_s - newest.wall_s) / 3600.0},
        suspect=len(wrong) < ENOUGH,
    )


def _wrong(view: CardView, since_wall_s: float) -> list[ProbeRecord]:
    """Return the card's wrong answers since then, oldest first."""
    found = [one for one in view.probes if one.result.status == "wrong_answer" and one.wall_s >= since_wall_s]
    return sorted(found, key=lambda one: one.wall_s)


def _wrong_alike(peer: CardView, newest: ProbeRecord, since_wall_s: float) -> bool:
    """Return whether a peer was wrong under the same software."""
    return any(one.environment == newest.environment for one in _wrong(peer, since_wall_s))


RULE = CardRule(NAME, judge, inputs="probes")
