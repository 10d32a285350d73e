"""When a card may be probed: every reason to leave it alone, and nothing else, is a skip."""

from typing import Any

import msgspec
import pytest

from agent.config.settings import ProbeSettings
from agent.model.vocabulary import PROBE_REASONS
from agent.probes.idle import Rest
from agent.probes.policy import Facts, cpus_are_idle, why_not
from tests.unit.agent.probes.cards import MIB, UUID, card

NOW_S = 1000.0
IDLE = Facts(
    now_s=NOW_S,
    taken_s=NOW_S - 1,
    card=card(compute_mode=0.0, mig_enabled=0.0),
    rest=Rest(NOW_S - 1, NOW_S - 60, 4 * MIB),
    pids_trusted=True,
)


def judged(**changes: object) -> str | None:
    """Return the reason under otherwise good circumstances."""
    return why_not(msgspec.structs.replace(IDLE, **changes), ProbeSettings())


def test_idle_card_may_be_probed() -> None:
    """With nothing against it a probe runs."""
    assert judged() is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"paused": {UUID}}, "maintenance"),
        ({"card": None}, "no_telemetry"),
        ({"card": card(lost="GPU_IS_LOST")}, "no_telemetry"),
        ({"taken_s": None}, "no_telemetry"),
        ({"taken_s": NOW_S - 6}, "no_telemetry"),
        ({"card": card(utilization=None)}, "no_telemetry"),
        ({"card": card(used_mib=None)}, "no_telemetry"),
        ({"card": card(processes=None)}, "no_telemetry"),
        ({"rest": None}, "no_telemetry"),
        ({"rest": Rest(NOW_S, NOW_S - 60, None)}, "no_telemetry"),
        ({"pids_trusted": False}, "no_host_pid"),
        ({"card": card(mig_enabled=1.0)}, "mig_mode"),
        ({"card": card(compute_mode=2.0)}, "compute_mode"),
        ({"card": card(compute_mode=3.0)}, "compute_mode"),
        ({"allocated": {UUID}}, "allocated"),
        ({"allocated": None}, "no_telemetry"),
        ({"tenants": (4711,)}, "foreign_process"),
        ({"card": card(used_mib=305)}, "memory_in_use"),
        ({"rest": Rest(NOW_S - 1, None, 4 * MIB)}, "busy"),
        ({"rest": Rest(NOW_S - 1, NOW_S - 29, 4 * MIB)}, "busy"),
        ({"busy_s": 864.0, "budget_s": 864.0}, "duty_budget"),
    ],
)
def test_each_reason_to_leave_a_card_alone(changes: dict[str, Any], reason: str) -> None:
    """One fact against it is enough, and has its own word."""
    assert judged(**changes) == reason
    assert reason in PROBE_REASONS["skipped"]


def test_use_within_the_tolerance_is_idle() -> None:
    """300 MiB above the card's level are nobody's work."""
    assert judged(card=card(used_mib=303)) is None


def test_unknown_modes_do_not_forbid() -> None:
    """A card that cannot say its compute or MIG mode is probed."""
    assert judged(card=card()) is None


def test_another_card_paused_or_given_away_changes_nothing() -> None:
    """Reasons count for the card they name."""
    assert judged(paused={"GPU-other"}, allocated={"GPU-other"}) is None


def test_pause_explains_more_than_missing_readings() -> None:
    """A paused card is not read; the pause is what an operator wants to see."""
    assert judged(paused={UUID}, card=card(lost="GPU_IS_LOST")) == "maintenance"


def test_cpus_at_work_are_not_idle() -> None:
    """The pipeline probe would measure what others leave it."""
    assert cpus_are_idle(3.0, 16)
    assert not cpus_are_idle(4.0, 16)
