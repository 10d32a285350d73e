"""A card that fell off the bus, needs a reset, or about which the driver gives no answer."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "card_lost"
CONFIRM_TICKS = 2
GOOD_TICKS = 3
"""Ticks in a row without trouble after which a card is back."""

GONE = ("GPU_IS_LOST", "GPU_NOT_FOUND")
"""NVML's names for a card that fell off the bus."""


def judge(view: CardView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``lost`` with cause ``hung``, ``reset_required``, ``unreachable`` or ``gone``."""
    if NAME in view.held:
        ticks = view.recent.tail(keys.LOST, GOOD_TICKS)
        lost = ticks is None or any(ticks)
    else:
        ticks = view.recent.tail(keys.LOST, CONFIRM_TICKS)
        lost = ticks is not None and all(ticks)
    if not lost:
        return None
    where = view.card.identity.pci_bus_id or f"GPU {view.card.identity.index}"
    error = view.card.lost
    if view.card.hung_s > 0 or error == "HUNG":
        return Conclusion(
            state="lost",
            cause="hung",
            summary=f"The driver has not answered about the card at {where} for {view.card.hung_s:.0f} s.",
            next_action="Look for XIDs in the kernel log; drain the node and reboot it if the card does not return.",
            evidence={"hung_seconds": view.card.hung_s},
        )
    if error == "RESET_REQUIRED":
        return Conclusion(
            state="lost",
            cause="reset_required",
            summary=f"The card at {where} does not work until it is reset.",
            next_action="Drain the card and reset it (nvidia-smi --gpu-reset).",
        )
    if error not in ("", *GONE):
        return Conclusion(
            state="lost",
            cause="unreachable",
            summary=f"The driver does not let the card at {where} be used: {error}.",
            next_action="Look for XIDs in the kernel log; reset the card or reboot the node.",
        )
    return Conclusion(
        state="lost",
        cause="gone",
        summary=f"The card at {where} has fallen off the bus.",
        next_action="Reboot the node; check the card's power, seating and temperature if it comes back.",
    )


RULE = CardRule(NAME, judge)
