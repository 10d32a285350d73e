"""Readings worked out from other readings: pure functions, their state passed in and out."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from agent.model.quantity import Derived
from agent.model.throttle import LIMITING_REASONS, THROTTLE_REASONS
from agent.model.vocabulary import TIER_PERIOD_S

BUSY_RATIO: Final = 0.05
"""Utilisation from which a card counts as at work."""
MAX_GAP_S: Final = 3 * TIER_PERIOD_S["fast"]
"""Longest time between two readings that is still attributed to what they say."""

_ACTIVE: Final = {reason: f"throttle_active_{reason}" for reason in THROTTLE_REASONS}
_DRIVER: Final = {reason: f"throttle_seconds_{reason}" for reason in THROTTLE_REASONS}
_SAMPLED: Final = {reason: f"throttle_seconds_{reason}_sampled" for reason in THROTTLE_REASONS}
_BUSY: Final = {reason: f"throttle_busy_seconds_{reason}" for reason in LIMITING_REASONS}
_NOTHING: Final[Mapping[str, float]] = MappingProxyType({})

RULES: Final = tuple(Derived(rule) for rule in ("throttle_sampled", "throttle_busy", "xid", "processes"))
"""Every rule a row of the table may name."""


class ThrottleTime(msgspec.Struct, frozen=True):
    """Seconds throttled, by reason, as accumulated so far; the driver's own counters as last seen."""

    taken_s: float
    sampled_s: Mapping[str, float] = _NOTHING
    busy_s: Mapping[str, float] = _NOTHING
    driver_s: Mapping[str, float] = _NOTHING


def throttle_time(previous: ThrottleTime | None, values: Mapping[str, float], taken_s: float) -> ThrottleTime:
    """Return ``previous`` moved on by the fast readings ``values`` taken at ``taken_s``.

    A gap longer than ``MAX_GAP_S`` adds nothing: what happened meanwhile is not known.
    """
    driver_s = {reason: values[key] for reason, key in _DRIVER.items() if key in values}
    if previous is None:
        return ThrottleTime(taken_s, driver_s=driver_s)
    passed_s = taken_s - previous.taken_s
    if not 0 < passed_s <= MAX_GAP_S:
        return msgspec.structs.replace(previous, taken_s=taken_s, driver_s=driver_s)
    busy = values.get("utilization_ratio", 0.0) >= BUSY_RATIO
    sampled_s = dict(previous.sampled_s)
    busy_s = dict(previous.busy_s)
    for reason, key in _ACTIVE.items():
        if values.get(key):
            sampled_s[reason] = sampled_s.get(reason, 0.0) + passed_s
        if busy and reason in _BUSY:
            held_s = _held_s(reason, previous, driver_s, passed_s if values.get(key) else 0.0)
            if held_s:
                busy_s[reason] = busy_s.get(reason, 0.0) + held_s
    return ThrottleTime(taken_s, sampled_s, busy_s, driver_s)


def _held_s(reason: str, previous: ThrottleTime, driver_s: Mapping[str, float], sampled_s: float) -> float:
    """Return how long the clocks were held since ``previous``: by the driver's counter where it has one."""
    if reason in driver_s and reason in previous.driver_s:
        return max(0.0, driver_s[reason] - previous.driver_s[reason])
    return sampled_s


def throttle_values(time: ThrottleTime, values: Mapping[str, float]) -> dict[str, float]:
    """Return the throttle rows to serve beside ``values``: sampled time only where the driver does not count."""
    known = [reason for reason, key in _ACTIVE.items() if key in values]
    sampled = {_SAMPLED[reason]: time.sampled_s.get(reason, 0.0) for reason in known if _DRIVER[reason] not in values}
    busy = {_BUSY[reason]: time.busy_s.get(reason, 0.0) for reason in known if reason in _BUSY}
    return sampled | busy


class XidHistory(msgspec.Struct, frozen=True):
    """XID errors of one card since the agent's start; they are events, so the count only rises."""

    count: int = 0
    last_code: int = 0
    last_wall_s: float = 0.0


def xid_history(previous: XidHistory, codes: tuple[int, ...], wall_s: float) -> XidHistory:
    """Return ``previous`` with ``codes`` that came just now."""
    if not codes:
        return previous
    return XidHistory(previous.count + len(codes), codes[-1], wall_s)


def xid_values(history: XidHistory) -> dict[str, float]:
    """Return the XID rows: the count from the start, the last one only once there is one."""
    if not history.count:
        return {"xid_events_total": 0.0}
    return {
        "xid_events_total": float(history.count),
        "xid_last_code": float(history.last_code),
        "xid_last_timestamp_seconds": history.last_wall_s,
    }


def process_values(memory_bytes: tuple[int | None, ...]) -> dict[str, float]:
    """Return the process rows; the sum of memory only where the driver tells that of every process."""
    values = {"processes": float(len(memory_bytes))}
    known = [size for size in memory_bytes if size is not None]
    if len(known) == len(memory_bytes):
        values["process_memory_bytes"] = float(sum(known))
    return values
