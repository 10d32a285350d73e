"""What the demo's cards do at any moment: the one source of its recordings, its history and its past probes.

A burn-in began 90 minutes ago on eight cards, of which card 2 gets too hot and card 5 is 8 % slow; a neighbour's
job starves of input; the third machine has no card. All of it is made up, in the shape of one H200's readings.
"""

import math
import random
from collections.abc import Iterator, Mapping
from typing import Final, Literal

import msgspec

from agent.model.probe import Attribution, Device, Environment, ProbeName, ProbeRecord, ProbeResult, Timing
from agent.model.quantities import QUANTITIES
from agent.model.snapshot import CardIdentity

Role = Literal["burning", "hot", "slow", "starved", "idle", "working"]
GIB: Final = 1024.0**3
DRIVER, TENSORFLOW = "580.159.04", "2.21.0"
BURN_IN_S: Final = 5400.0
"""How long ago the burn-in began."""
STARVED_S: Final = 3000.0
"""How long ago the job began that starves."""
SLOW_S: Final = 4.5 * 3600.0
"""How long ago the slow card became slow."""
PAST_S: Final = 32 * 3600.0
"""How far back the probes go."""
HOT_CELSIUS: Final = 87.0
_WARM_UP_S: Final = 300.0
_PROBES: Final[tuple[tuple[ProbeName, str, str, float, str], ...]] = (
    ("matmul", "bf16", "8192x8192x8192", 659.4e12, "flop/s"),
    ("resnet50", "bf16", "256x224x224x3", 2051.0, "images/s"),
)


class Seat(msgspec.Struct, frozen=True):
    """One card of the demo and its part in the story."""

    role: Role
    extra_celsius: float = 0.0


class Node(msgspec.Struct, frozen=True):
    """One machine of the demo."""

    name: str
    rack: str
    position: str
    seats: tuple[Seat, ...] = ()


NODES: Final = (
    Node(
        "gpu-r07-n12",
        "R07",
        "U12",
        (
            Seat("burning"),
            Seat("burning", 1),
            Seat("hot", 3),
            Seat("burning", 2),
            Seat("burning"),
            Seat("slow", 1),
            Seat("burning", -1),
            Seat("burning", 1),
        ),
    ),
    Node("gpu-r07-n14", "R07", "U14", (Seat("starved"), Seat("idle"))),
    Node("build-03", "R08", "U03"),
)


def identity(node: Node, index: int) -> CardIdentity:
    """Return who a card is: the same at every start of the demo."""
    number = sum(ord(letter) * 31**at for at, letter in enumerate(node.name)) % 10**8
    return CardIdentity(
        index=index,
        uuid=f"GPU-de300000-0000-4000-8000-{number:08d}{index:04d}",
        name="NVIDIA H200",
        serial=f"{number:08d}{index:04d}",
        pci_bus_id=f"0000:{0x1B + 0x10 * index:02x}:00.0",
        vbios="96.00.A5.00.01",
        driver=DRIVER,
        compute_capability="9.0",
    )


def readings(seat: Seat, index: int, ago_s: float) -> dict[str, float]:
    """Return a card's readings ``ago_s`` seconds before the demo's start (negative after it), by quantity key.

    What the agent derives itself (busy throttle seconds, XID) is left out.
    """
    values = {row.key: 0.0 for row in QUANTITIES if not row.key.endswith("_sampled") and not _derived(row.key)}
    values |= _STATIC
    values |= _at_work(seat, index, ago_s) if _works(seat, ago_s) else _idle(seat, index, ago_s)
    free_bytes = values["memory_total_bytes"] - values["memory_used_bytes"] - values["memory_reserved_bytes"]
    power_watts = values["power_watts"]
    values |= {
        "memory_free_bytes": free_bytes,
        "power_instant_watts": power_watts,
        "power_peak_watts": power_watts + 9.0,
    }
    return values


def _derived(key: str) -> bool:
    return key.startswith(("throttle_busy", "xid_", "fan_", "retired_")) or key in ("processes", "process_memory_bytes")


def _works(seat: Seat, ago_s: float) -> bool:
    if seat.role in ("burning", "hot", "slow"):
        return ago_s < BURN_IN_S
    return seat.role == "working" or (seat.role == "starved" and ago_s < STARVED_S)


def _idle(seat: Seat, index: int, ago_s: float) -> dict[str, float]:
    return {
        "temperature_celsius": 34.0 + seat.extra_celsius + 0.4 * math.sin(ago_s / 900 + index),
        "memory_temperature_celsius": 40.0 + seat.extra_celsius,
        "power_watts": 76.0 + index % 3,
        "memory_used_bytes": 0.6 * GIB,
        "clock_sm_hertz": 345e6,
        "clock_graphics_hertz": 345e6,
        "throttle_active_gpu_idle": 1.0,
        "pcie_generation": 1.0,
    }


def _at_work(seat: Seat, index: int, ago_s: float) -> dict[str, float]:
    wave = math.sin(ago_s / 37.0 + index) + 0.4 * math.sin(ago_s / 11.0 + 2 * index)
    if seat.role == "starved":
        duty = 0.31 + 0.03 * wave
        return _idle(seat, index, ago_s) | {
            "utilization_ratio": duty,
            "memory_utilization_ratio": 0.11,
            "tensor_active_ratio": 0.14,
            "temperature_celsius": 45.0 + wave,
            "power_watts": 214.0 + 12 * wave,
            "memory_used_bytes": 52.0 * GIB,
            "clock_sm_hertz": 1980e6,
            "clock_graphics_hertz": 1980e6,
            "throttle_active_gpu_idle": 0.0,
            "pcie_generation": 5.0,
        }
    since_s = BURN_IN_S - ago_s if seat.role != "working" else 1e6
    settled = 64.0 + seat.extra_celsius + (36.0 if seat.role == "hot" else 0.0)
    heat = settled - (settled - 36.0) * math.exp(-since_s / _WARM_UP_S)
    throttled = heat >= HOT_CELSIUS
    return {
        "utilization_ratio": 0.98,
        "memory_utilization_ratio": 0.44 + 0.02 * wave,
        "sm_active_ratio": 0.91,
        "tensor_active_ratio": 0.62,
        "dram_active_ratio": 0.41,
        "memory_used_bytes": 121.3 * GIB,
        "temperature_celsius": min(heat, HOT_CELSIUS) + 0.5 * wave,
        "memory_temperature_celsius": min(heat, HOT_CELSIUS) + 7.0,
        "power_watts": (472.0 if throttled else 690.0) + 6.0 * wave,
        "clock_sm_hertz": (1170e6 if throttled else 1620e6) + 15e6 * round(wave),
        "clock_graphics_hertz": 1170e6 if throttled else 1620e6,
        "throttle_active_sw_power_cap": float(not throttled),
        "throttle_active_hw_thermal": float(throttled),
        "throttle_active_hw_slowdown": float(throttled),
        "throttle_seconds_sw_power_cap": 0.0 if throttled else 0.97 * since_s,
        "throttle_seconds_hw_thermal": 0.93 * max(0.0, since_s - 500.0) if throttled else 0.0,
    }


def hot_for_s(seat: Seat, ago_s: float) -> float:
    """Return for how long heat has held the card's clocks down at that moment; 0 where it does not."""
    if seat.role != "hot" or not _works(seat, ago_s):
        return 0.0
    since_s = BURN_IN_S - ago_s
    settled = 64.0 + seat.extra_celsius + 36.0
    onset_s = _WARM_UP_S * math.log((settled - 36.0) / (settled - HOT_CELSIUS))
    return max(0.0, since_s - onset_s)


def probe_records(node: Node, now_wall_s: float) -> Iterator[ProbeRecord]:
    """Yield the hourly judged probes of every card, oldest first: two days of good ones, then the slow card's."""
    chance = random.Random(node.name)  # noqa: S311 - noise of a story
    ages_s = [age * 3600.0 + 600.0 for age in range(int(PAST_S // 3600), -1, -1)]
    for age_s in ages_s:
        for index, seat in enumerate(node.seats):
            for probe, dtype, shape, usual, unit in _PROBES:
                spread = 0.004 * math.sin(7.0 * index + len(node.name))
                factor = (1.0 + spread + chance.gauss(0.0, 0.001)) * (0.92 if _is_slow(seat, age_s) else 1.0)
                ended_s = now_wall_s - age_s + 30.0 * index
                result = ProbeResult(
                    probe=probe,
                    status="ok",
                    dtype=dtype,
                    shape=shape,
                    method_version=1,
                    value=usual * factor,
                    unit=unit,
                    timing=Timing(0.0167, 0.0166, 0.0169, 0.00005, 30, 10, 2.31, 1.2, 0.012),
                    allocator_peak_bytes=402_653_184,
                )
                yield _record(node, index, ended_s, result)


def _is_slow(seat: Seat, age_s: float) -> bool:
    return seat.role == "slow" and age_s <= SLOW_S


def _record(node: Node, index: int, wall_s: float, result: ProbeResult) -> ProbeRecord:
    who = identity(node, index)
    return ProbeRecord(
        wall_s=wall_s,
        gpu=index,
        uuid=who.uuid,
        result=result,
        environment=Environment("3.12.4", TENSORFLOW, "12.5.1", "9.3.0", DRIVER),
        device=Device("gpu", who.name, who.uuid, who.pci_bus_id, "9.0", 150_754_820_096),
        attribution=Attribution(
            samples=40,
            sm_clock_median_hertz=1620e6,
            memory_clock_median_hertz=3201e6,
            temperature_max_celsius=51.0,
            power_mean_watts=688.0,
            power_limit_watts=700.0,
            pcie_generation_max=5.0,
            pcie_width_max=16.0,
            throttle_share={"sw_power_cap": 0.94},
        ),
        elapsed_s=14.2,
        cpu_s=11.0,
        judged=True,
    )


_STATIC: Final[Mapping[str, float]] = {
    "memory_total_bytes": 150_754_820_096.0,
    "memory_reserved_bytes": 0.6 * GIB,
    "temperature_threshold_slowdown_celsius": 89.0,
    "temperature_threshold_shutdown_celsius": 92.0,
    "temperature_threshold_gpu_max_celsius": 87.0,
    "temperature_threshold_memory_max_celsius": 95.0,
    "power_limit_management_watts": 700.0,
    "power_limit_enforced_watts": 700.0,
    "power_limit_default_watts": 700.0,
    "power_limit_min_watts": 200.0,
    "power_limit_max_watts": 700.0,
    "clock_memory_hertz": 3201e6,
    "clock_video_hertz": 1440e6,
    "clock_max_sm_hertz": 1980e6,
    "clock_max_graphics_hertz": 1980e6,
    "clock_max_memory_hertz": 3201e6,
    "application_clock_graphics_hertz": 1980e6,
    "application_clock_memory_hertz": 3201e6,
    "pcie_generation": 5.0,
    "pcie_generation_max": 5.0,
    "pcie_width_lanes": 16.0,
    "pcie_width_max_lanes": 16.0,
    "nvlink_active_links": 18.0,
    "fabric_state": 3.0,
    "fabric_health": 1.0,
    "ecc_enabled": 1.0,
    "persistence_enabled": 1.0,
}
"""What stands still on an H200."""
