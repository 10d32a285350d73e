"""NVLink fabric: cards behind NVSwitches work together only once the fabric manager has set them up."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardView, Conclusion, NodeRule, NodeView

NAME = "fabric_down"
COMPLETED = 3.0
OPEN_S = 60.0
"""Longer than registration takes after a start."""


def judge(view: NodeView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``fabric_down`` where half or more of the cards with a fabric have not completed registration."""
    known = [down for card in view.cards if (down := _down(card)) is not None]
    if not known or sum(known) * 2 < len(known):
        return None
    return Conclusion(
        state="fabric_down",
        cause="not_registered",
        summary=f"{sum(known)} of {len(known)} cards are not registered with the NVLink fabric: CUDA cannot start.",
        next_action="See whether the fabric manager runs and fits the driver: systemctl status nvidia-fabricmanager.",
        evidence={"cards_not_registered": float(sum(known)), "cards_with_fabric": float(len(known))},
    )


def _down(card: CardView) -> bool | None:
    """Return whether the card's registration was open for a while; None where it has no fabric."""
    states = card.recent.covered(keys.FABRIC_STATE, OPEN_S)
    return None if not states else max(states) < COMPLETED


RULE = NodeRule(NAME, judge, covers=("nvlink", "probe_failing", "probe_environment"))
