"""Every rule, in order."""

from typing import Final

from agent.verdicts import input_bound
from agent.verdicts.rules import (
    below_floor,
    below_peers,
    card_lost,
    degraded,
    driver_hung,
    ecc_corrected,
    ecc_uncorrected,
    fabric_down,
    fell_together,
    gpu_missing,
    host_slow,
    hw_slowdown,
    low_clocks,
    maintenance,
    no_telemetry,
    nvlink,
    nvml_down,
    pcie_link,
    pcie_replay,
    power_brake,
    power_cap,
    probe_environment,
    probe_failing,
    recovery,
    retired_pages,
    row_remap,
    slow_drift,
    thermal,
    thermal_resistance,
    unjudged,
    wrong_answer,
    xid,
)
from agent.verdicts.view import CardRule, NodeRule

CARD_RULES: Final[tuple[CardRule, ...]] = (
    maintenance.RULE,
    card_lost.RULE,
    ecc_uncorrected.RULE,
    row_remap.RULE,
    retired_pages.RULE,
    recovery.RULE,
    xid.RULE,
    wrong_answer.RULE,
    degraded.RULE,
    slow_drift.RULE,
    below_peers.RULE,
    below_floor.RULE,
    fell_together.RULE,
    pcie_link.RULE,
    pcie_replay.RULE,
    nvlink.RULE,
    low_clocks.RULE,
    thermal.RULE,
    power_brake.RULE,
    hw_slowdown.RULE,
    no_telemetry.RULE,
    probe_failing.RULE,
    unjudged.RULE,
    thermal_resistance.RULE,
    ecc_corrected.RULE,
    power_cap.RULE,
    input_bound.RULE,
)
"""In the order in which a card's findings are shown."""

NODE_RULES: Final[tuple[NodeRule, ...]] = (
    driver_hung.RULE,
    nvml_down.RULE,
    fabric_down.RULE,
    gpu_missing.RULE,
    probe_environment.RULE,
    host_slow.RULE,
)
"""In order of precedence: the first that holds names the node's state."""
