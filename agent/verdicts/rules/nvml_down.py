"""The driver's management library is not there, or refuses: no card can be seen."""

from types import MappingProxyType
from typing import Final

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import Conclusion, NodeRule, NodeView

NAME = "nvml_down"
TICKS = 3
CAUSES: Final = MappingProxyType(
    {
        "LIB_RM_VERSION_MISMATCH": "version_mismatch",
        "DRIVER_NOT_LOADED": "driver_not_loaded",
        "LIBRARY_NOT_FOUND": "library_missing",
        "NO_PERMISSION": "no_permission",
        "NO_GPU": "no_card",
        "CRASHED": "crashed",
    }
)
"""Causes by the error's name; ``other`` for all that is not listed."""
NOT_DOWN: Final = frozenset({"STARTING", "PAUSED", "DISABLED", "HUNG"})
"""While it is initialised, or left alone on purpose; a driver that hangs is another rule's."""


def judge(view: NodeView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``nvml_down`` after three ticks without the driver, where there should be cards and none is paused."""
    ticks = view.recent.tail(keys.NVML_UP, TICKS)
    expected = view.pci_bus_ids or view.inventory or view.cards or view.expected_gpus
    if ticks is None or any(ticks) or not expected or view.nvml.error in NOT_DOWN or _all_paused(view):
        return None
    return Conclusion(
        state="nvml_down",
        cause=CAUSES.get(view.nvml.error, "other"),
        summary=f"The NVIDIA driver cannot be asked: {view.nvml.error or 'no answer'}.",
        next_action=view.nvml.advice or "See whether nvidia-smi works; reload the driver or reboot the node.",
        evidence={"cards_on_the_bus": float(len(view.pci_bus_ids))},
    )


def _all_paused(view: NodeView) -> bool:
    """Return whether every card that is known is paused: then the driver is down because an operator took it."""
    known = {identity.uuid for identity in view.inventory} | {card.card.identity.uuid for card in view.cards}
    return bool(known) and known <= view.paused


RULE = NodeRule(NAME, judge, covers=("card_lost", "no_telemetry", "probe_failing", "gpu_missing", "probe_environment"))
