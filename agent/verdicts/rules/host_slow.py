"""Half of the node's cards got slow at once: the host's doing, one verdict instead of many."""

from agent.config.settings import VerdictSettings
from agent.verdicts.rules import fell_together
from agent.verdicts.view import Conclusion, NodeRule, NodeView

NAME = "host_slow"


def judge(view: NodeView, thresholds: VerdictSettings) -> Conclusion | None:  # noqa: ARG001 - the cards' rule weighs
    """Return ``host_slow`` while two or more cards are slow together."""
    slow = [card for card in view.cards if fell_together.NAME in card.held]
    if len(slow) < 2:
        return None
    return Conclusion(
        state="host_slow",
        cause="cards_fell_together",
        summary=f"{len(slow)} of {len(view.cards)} cards got slower at the same time.",
        next_action=(
            "Look for what changed on the host: power limits, clocks, cooling, driver, a busy CPU, the hypervisor. "
            "If it is meant to stay so: `heatsoak reference renew`."
        ),
        evidence={"cards_slow": float(len(slow)), "cards": float(len(view.cards))},
    )


RULE = NodeRule(NAME, judge, covers=(fell_together.NAME,))
