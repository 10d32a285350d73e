"""Whether a card may be probed now: a good guest takes what nobody needs."""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from agent.config.settings import ProbeSettings
from agent.model.snapshot import Card
from agent.probes.idle import Rest

STALE_S: Final = 5.0
"""Readings older than this say nothing about a card now."""
MOST_IDLE_LOAD: Final = 0.2
"""Tasks that run or wait, for each CPU of a host, up to which its CPUs count as idle."""
_MEBIBYTE: Final = 1024 * 1024
_SHARED: Final = 0
"""The compute mode that lets any process in: in the others a probe would lock a tenant out."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """All that the decision about one card rests on."""

    now_s: float
    """On the monotonic clock, as every time here."""
    taken_s: float | None
    """When the readings were taken; None where there are none."""
    card: Card | None
    rest: Rest | None
    tenants: Sequence[int] = ()
    """Processes on the card that are not ours."""
    pids_trusted: bool = True
    paused: Collection[str] = ()
    """UUIDs that an operator paused."""
    allocated: Collection[str] | None = ()
    """UUIDs that a scheduler has given away; None where it should say and does not."""
    busy_s: float = 0.0
    """Card time that scheduled probes took in the last day."""
    budget_s: float = float("inf")
    """Card time they may take in a day."""


def why_not(facts: Facts, settings: ProbeSettings) -> str | None:
    """Return the reason to skip a probe of this card now, a word of PROBE_REASONS; None where it may run."""
    card = facts.card
    if card is not None and card.identity.uuid in facts.paused:
        return "maintenance"
    if card is None or card.lost or facts.taken_s is None or facts.now_s - facts.taken_s > STALE_S:
        return "no_telemetry"
    if not facts.pids_trusted:
        return "no_host_pid"
    if card.values.get("mig_enabled"):
        return "mig_mode"
    if card.values.get("compute_mode", _SHARED) != _SHARED:
        return "compute_mode"
    if facts.allocated is None:
        return "no_telemetry"
    if card.identity.uuid in facts.allocated:
        return "allocated"
    return _why_not_idle(facts, card, settings) or ("duty_budget" if facts.busy_s >= facts.budget_s else None)


def _why_not_idle(facts: Facts, card: Card, settings: ProbeSettings) -> str | None:
    used_bytes = card.values.get("memory_used_bytes")
    if facts.tenants:
        return "foreign_process"
    if card.processes is None or used_bytes is None or "utilization_ratio" not in card.values:
        return "no_telemetry"
    if facts.rest is None or facts.rest.idle_bytes is None:
        return "no_telemetry"
    if used_bytes - facts.rest.idle_bytes > settings.idle_memory_mib * _MEBIBYTE:
        return "memory_in_use"
    quiet_since_s = facts.rest.quiet_since_s
    if quiet_since_s is None or facts.now_s - quiet_since_s < settings.idle_s:
        return "busy"
    return None


def cpus_are_idle(load: float, cpus: int) -> bool:
    """Return whether a host with ``cpus`` CPUs and a load average of ``load`` has them free for a probe."""
    return load <= MOST_IDLE_LOAD * cpus
