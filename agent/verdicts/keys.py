"""The quantities that rules read, and which of them are remembered for how long."""

from typing import Final

UTILIZATION: Final = "utilization_ratio"
POWER: Final = "power_watts"
POWER_LIMIT: Final = "power_limit_enforced_watts"
POWER_LIMIT_DEFAULT: Final = "power_limit_default_watts"
TEMPERATURE: Final = "temperature_celsius"
SM_CLOCK: Final = "clock_sm_hertz"
SM_CLOCK_MAX: Final = "clock_max_sm_hertz"

ECC_UNCORRECTED: Final = "ecc_errors_uncorrected_volatile"
ECC_CORRECTED: Final = "ecc_errors_corrected_volatile"
REMAP_PENDING: Final = "row_remap_pending"
REMAP_FAILED: Final = "row_remap_failed"
RETIRED_SINGLE_BIT: Final = "retired_pages_single_bit"
RETIRED_DOUBLE_BIT: Final = "retired_pages_double_bit"
RETIRED_PENDING: Final = "retired_pages_pending"
RECOVERY_ACTION: Final = "recovery_action"
XID_CODE: Final = "xid_last_code"
XID_TIME: Final = "xid_last_timestamp_seconds"

PCIE_GENERATION: Final = "pcie_generation"
PCIE_GENERATION_MAX: Final = "pcie_generation_max"
PCIE_WIDTH: Final = "pcie_width_lanes"
PCIE_WIDTH_MAX: Final = "pcie_width_max_lanes"
PCIE_REPLAYS: Final = "pcie_replays_total"
NVLINK_ERRORS: Final = ("nvlink_errors_replay", "nvlink_errors_recovery", "nvlink_errors_crc")
NVLINK_ACTIVE: Final = "nvlink_active_links"
FABRIC_STATE: Final = "fabric_state"

LOST: Final = "lost"
"""Not a reading: 1 in a tick in which the card was lost or needed a reset, else 0."""
SILENT: Final = "silent"
"""Not a reading: 1 in a tick in which nothing was known of the card, else 0."""
NVML_UP: Final = "nvml_up"
"""Not a reading of a card but of the node: whether the driver answered."""
CARDS_PRESENT: Final = "cards_present"
"""Not a reading of a card but of the node: how many cards the driver names."""
HUNG: Final = "hung"
"""Not a reading of a card but of the node: whether a driver call was without an answer."""

_REASONS: Final = (
    "applications_clocks",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal",
    "hw_thermal",
    "hw_power_brake",
    "display_clocks",
)
_LIMITING: Final = ("sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake")


def active(reason: str) -> str:
    """Return the key of the flag that the clocks are held down for ``reason``."""
    return f"throttle_active_{reason}"


def busy_seconds(reason: str) -> str:
    """Return the key of the seconds the clocks were held down for ``reason`` while the card was at work."""
    return f"throttle_busy_seconds_{reason}"


MINUTE_GAUGES: Final = (UTILIZATION, POWER, TEMPERATURE)
MINUTE_COUNTERS: Final = (ECC_CORRECTED, PCIE_REPLAYS, *NVLINK_ERRORS, XID_CODE, XID_TIME)
"""Remembered for hours."""
RECENT: Final = (
    *MINUTE_GAUGES,
    SM_CLOCK,
    ECC_UNCORRECTED,
    REMAP_PENDING,
    REMAP_FAILED,
    RETIRED_PENDING,
    RETIRED_SINGLE_BIT,
    RETIRED_DOUBLE_BIT,
    RECOVERY_ACTION,
    XID_CODE,
    XID_TIME,
    PCIE_GENERATION,
    PCIE_WIDTH,
    NVLINK_ACTIVE,
    FABRIC_STATE,
    LOST,
    SILENT,
    *(active(reason) for reason in _REASONS),
    *(busy_seconds(reason) for reason in _LIMITING),
)
"""Remembered for minutes."""
NODE: Final = (NVML_UP, CARDS_PRESENT, HUNG)
"""Remembered of the node for minutes."""
