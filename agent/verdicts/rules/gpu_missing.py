"""Fewer cards than there should be: by the configuration, the PCI bus, the inventory."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import Conclusion, NodeRule, NodeView

NAME = "gpu_missing"
TICKS = 5


def judge(view: NodeView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``gpu_missing`` with the bus ids that are missing, after five ticks with as few cards."""
    up = view.recent.tail(keys.NVML_UP, TICKS)
    counts = view.recent.tail(keys.CARDS_PRESENT, TICKS)
    if up is None or counts is None or not all(up):
        return None
    missing = _missing(view)
    present = len(view.cards)
    expected = max(view.expected_gpus or 0, present + len(missing))
    if expected <= max(counts) or present >= expected:
        return None
    named = ", ".join(missing) or "address unknown"
    return Conclusion(
        state="gpu_missing",
        cause="missing",
        summary=f"{present} of {expected} cards are there; missing: {named}.",
        next_action=(
            "Reboot the node; check the card's power and seating if it stays away. "
            "If the card was taken out: `heatsoak inventory forget`."
        ),
        evidence={"expected_gpus": float(expected), "present_gpus": float(present)},
    )


def _missing(view: NodeView) -> tuple[str, ...]:
    """Return the bus ids of cards on the bus or in the inventory that the driver does not name."""
    uuids = {card.card.identity.uuid for card in view.cards}
    present = {card.card.identity.pci_bus_id for card in view.cards}
    known = {identity.pci_bus_id for identity in view.inventory if identity.uuid not in uuids}
    return tuple(sorted((known | set(view.pci_bus_ids)) - present - {""}))


RULE = NodeRule(NAME, judge)
