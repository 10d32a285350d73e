"""Rows about throttling: why a card's clocks are held down, and for how long."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agent.model.quantity import NANO, Bit, Call, Derived, Field, Quantity, Source, counter, gauge

THROTTLE_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gpu_idle": "GpuIdle",
        "applications_clocks": "ApplicationsClocksSetting",
        "sw_power_cap": "SwPowerCap",
        "hw_slowdown": "HwSlowdown",
        "sync_boost": "SyncBoost",
        "sw_thermal": "SwThermalSlowdown",
        "hw_thermal": "HwThermalSlowdown",
        "hw_power_brake": "HwPowerBrakeSlowdown",
        "display_clocks": "DisplayClockSetting",
    }
)
"""Reasons why a card's clocks are held down, with NVML's word for each."""
LIMITING_REASONS: Final = ("sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "hw_power_brake")
"""The reasons that slow down work; the others hold the clocks of a card that is idle or set so."""

_MAX_SECONDS: Final = 3.2e9


def _throttle_active(reason: str, word: str) -> Quantity:
    return gauge(
        f"throttle_active_{reason}",
        "Whether the clocks are held down, by reason.",
        "fast",
        Bit("DeviceGetCurrentClocksEventReasons", f"nvmlClocksEventReason{word}"),
        Bit("DeviceGetCurrentClocksThrottleReasons", f"nvmlClocksThrottleReason{word}"),
        metric="throttle_active",
        high=1,
        reason=reason,
    )


def _violation(policy: str) -> Call:
    return Call("DeviceGetViolationStatus", (f"NVML_PERF_POLICY_{policy}",), "violationTime")


_DRIVER_THROTTLE: Final[Mapping[str, tuple[Source, ...]]] = MappingProxyType(
    {
        "sw_power_cap": (
            Field("NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP"),
            Field("NVML_FI_DEV_PERF_POLICY_POWER"),
            _violation("POWER"),
        ),
        "sync_boost": (
            Field("NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST"),
            Field("NVML_FI_DEV_PERF_POLICY_SYNC_BOOST"),
            _violation("SYNC_BOOST"),
        ),
        "sw_thermal": (
            Field("NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN"),
            Field("NVML_FI_DEV_PERF_POLICY_THERMAL"),
            _violation("THERMAL"),
        ),
        "hw_thermal": (Field("NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN"),),
        "hw_power_brake": (Field("NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN"),),
        "board_limit": (Field("NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT"), _violation("BOARD_LIMIT")),
        "reliability": (Field("NVML_FI_DEV_PERF_POLICY_RELIABILITY"), _violation("RELIABILITY")),
        "low_utilization": (Field("NVML_FI_DEV_PERF_POLICY_LOW_UTILIZATION"), _violation("LOW_UTILIZATION")),
    }
)
_THROTTLE_SECONDS_HELP: Final = (
    "Time the clocks were held down, by reason: counted by the driver, or sampled each tick where it does not count."
)


def _throttle_seconds(reason: str, origin: str, *sources: Source) -> Quantity:
    return counter(
        f"throttle_seconds_{reason}" + ("_sampled" if origin == "sampled" else ""),
        _THROTTLE_SECONDS_HELP,
        "fast",
        *sources,
        metric="throttle_seconds_total",
        divisor=1.0 if origin == "sampled" else NANO,
        high=_MAX_SECONDS,
        reason=reason,
        source=origin,
    )


def _throttle_busy(reason: str) -> Quantity:
    return counter(
        f"throttle_busy_seconds_{reason}",
        "Time the clocks were held down while the card was at work, since the agent's start.",
        "fast",
        Derived("throttle_busy"),
        metric="throttle_busy_seconds_total",
        reason=reason,
    )


THROTTLE_ROWS: Final = (
    gauge(
        "pstate", "Performance state, 0 the highest, 15 the lowest.", "fast", Call("DeviceGetPerformanceState"), high=15
    ),
    *(_throttle_active(reason, word) for reason, word in THROTTLE_REASONS.items()),
    *(_throttle_seconds(reason, "driver", *sources) for reason, sources in _DRIVER_THROTTLE.items()),
    *(_throttle_seconds(reason, "sampled", Derived("throttle_sampled")) for reason in THROTTLE_REASONS),
    *(_throttle_busy(reason) for reason in LIMITING_REASONS),
)
