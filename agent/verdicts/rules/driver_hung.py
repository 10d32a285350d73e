"""A driver call that does not come back, and no card that answers."""

from agent.config.settings import VerdictSettings
from agent.verdicts import keys
from agent.verdicts.view import Conclusion, NodeRule, NodeView

NAME = "driver_hung"
HUNG_S = 5.0
"""Seconds without an answer from which a call hangs rather than being slow."""

NOT_HUNG = frozenset({"STARTING", "PAUSED", "DISABLED"})
"""The driver's initialisation may take a minute and has its own deadline."""


def judge(view: NodeView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``driver_hung`` while a call hangs and not one card gives values."""
    if view.nvml.hung_s < HUNG_S or view.nvml.error in NOT_HUNG or any(card.card.values for card in view.cards):
        return None
    ticks = view.recent.tail(keys.HUNG, 2)
    if ticks is None or not all(ticks):
        return None
    return Conclusion(
        state="driver_hung",
        cause="no_answer",
        summary=f"A call into the NVIDIA driver has not come back for {view.nvml.hung_s:.0f} s.",
        next_action="Look for XIDs and hung tasks in the kernel log; drain the node and reboot it if it stays.",
        evidence={"hung_seconds": view.nvml.hung_s, "threshold_seconds": HUNG_S},
    )


RULE = NodeRule(
    NAME,
    judge,
    covers=("card_lost", "no_telemetry", "probe_failing", "nvml_down", "gpu_missing", "probe_environment"),
)
