"""What the driver itself asks for to bring a card back: a reset, a reboot."""

from types import MappingProxyType
from typing import Final

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.rules.common import confirmed
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "recovery_action"
ACTIONS: Final = MappingProxyType(
    {
        1: ("gpu_reset", "Drain the card and reset it."),
        2: ("node_reboot", "Drain the node and reboot it."),
        3: ("drain_p2p", "End the work that reaches this card from other cards."),
        4: ("drain_and_reset", "End the work that reaches this card from other cards, then reset it."),
        5: ("recover_imex", "Bring the IMEX domain of the node back."),
        6: ("bus_reset", "Drain the card and reset it through the bus."),
        7: ("system_reboot", "Drain the node and reboot it."),
    }
)


def judge(view: CardView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``faulty`` with the action as cause while the driver asks for one."""
    asked = confirmed(view.recent, keys.RECOVERY_ACTION)
    if asked is None:
        return None
    cause, action = ACTIONS.get(int(asked), ("other", "Look up the action in the driver's documentation."))
    return Conclusion(
        state="faulty",
        cause=cause,
        summary="The driver says that the card needs help to work again.",
        next_action=action,
        evidence={"recovery_action": asked},
    )


RULE = CardRule(NAME, judge)
