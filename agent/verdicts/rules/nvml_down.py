"""The driver's management library is not there, or refuses: no card can be seen."""

from typing import Final

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import Conclusion, NodeRule, NodeView

NAME = "nvml_down"
TICKS = 3
CAUSES: Final = (
    ("version_mismatch", ("LIBRMVERSIONMISMATCH", "LIB_RM_VERSION_MISMATCH")),
    ("driver_not_loaded", ("DRIVERNOTLOADED", "DRIVER_NOT_LOADED")),
    ("library_missing", ("LIBRARYNOTFOUND", "LIBRARY_NOT_FOUND", "FUNCTIONNOTFOUND")),
    ("no_permission", ("NOPERMISSION", "NO_PERMISSION")),
)
"""Causes by what their error names contain."""


def judge(view: NodeView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``nvml_down`` after three ticks without the driver, where there should be cards and none is paused."""
    ticks = view.recent.tail(keys.NVML_UP, TICKS)
    expected = view.pci_bus_ids or view.inventory or view.cards or view.expected_gpus
    if ticks is None or any(ticks) or not expected or _all_paused(view):
        return None
    error = view.nvml.error or "no answer"
    return Conclusion(
        state="nvml_down",
        cause=_cause(error),
        summary=f"The NVIDIA driver cannot be asked: {error}.",
        next_action=view.nvml.advice or "See whether nvidia-smi works; reload the driver or reboot the node.",
        evidence={"cards_on_the_bus": float(len(view.pci_bus_ids))},
    )


def _all_paused(view: NodeView) -> bool:
    """Return whether every card that is known is paused: then the driver is down because an operator took it."""
    known = {identity.uuid for identity in view.inventory} | {card.card.identity.uuid for card in view.cards}
    return bool(known) and known <= view.paused


def _cause(error: str) -> str:
    """Return the cause for an error's name; ``other`` for all that is not listed."""
    name = error.upper()
    return next((cause for cause, parts in CAUSES if any(part in name for part in parts)), "other")


RULE = NodeRule(NAME, judge, covers=("card_lost", "no_telemetry", "probe_failing", "gpu_missing", "probe_environment"))
