"""Whole snapshots as the exporters get them: healthy, broken in several ways, without cards, hostile."""

from collections.abc import Mapping

from agent.model.metrics import Metric, Sample
from agent.model.probe import Attribution, Device, Environment, ProbeName, ProbeRecord, ProbeResult, Timing
from agent.model.quantities import QUANTITIES
from agent.model.reference import Series, series_of
from agent.model.snapshot import Card, CardIdentity, CollectorHealth, LoopHealth, NvmlHealth, Snapshot
from agent.model.throttle import THROTTLE_REASONS
from agent.model.verdict import CardVerdict, Finding, NodeVerdict
from agent.model.vocabulary import CardState, ProbeStatus, WorkloadState

TAKEN_MONOTONIC_S = 5000.0
TAKEN_WALL_S = 1_764_500_000.0
GIB = 2.0**30

HOST_METRICS = (
    Metric("heatsoak_host_cpu_seconds_total", "CPU time since boot by mode, over all CPUs.", "counter", ("mode",)),
    Metric("heatsoak_host_cpus", "CPUs online.", "gauge"),
    Metric("heatsoak_host_load1", "Tasks running, averaged over 1 minute.", "gauge"),
    Metric("heatsoak_host_memory_total_bytes", "Memory the kernel manages.", "gauge"),
    Metric("heatsoak_host_memory_available_bytes", "Memory that programs can have.", "gauge"),
    Metric(
        "heatsoak_host_pressure_seconds_total", "Time tasks waited for a resource.", "counter", ("resource", "stall")
    ),
    Metric("heatsoak_host_disk_read_bytes_total", "Bytes read.", "counter", ("device",)),
    Metric("heatsoak_host_disk_written_bytes_total", "Bytes written.", "counter", ("device",)),
    Metric("heatsoak_host_network_receive_bytes_total", "Bytes received.", "counter", ("device",)),
    Metric("heatsoak_host_network_transmit_bytes_total", "Bytes sent.", "counter", ("device",)),
    Metric("heatsoak_probe_runs_total", "Finished probe runs.", "counter", ("gpu", "uuid", "status", "reason")),
)


def uuid_of(index: int) -> str:
    """Return the made-up UUID of card ``index``."""
    return f"GPU-7a1e0000-5c3d-4e2f-9b8a-0000000000{index:02d}"


def identity(index: int = 0, name: str = "NVIDIA H200") -> CardIdentity:
    """Return who card ``index`` is."""
    return CardIdentity(
        index=index,
        uuid=uuid_of(index),
        name=name,
        serial=f"16520240000{index:02d}",
        pci_bus_id=f"0000:{0x1B + 0x10 * index:02x}:00.0",
        vbios="96.00.A5.00.01",
        driver="580.159.04",
        compute_capability="9.0",
    )


def h200_values(**changes: float) -> dict[str, float]:
    """Return the readings of an idle H200, with ``changes`` by key."""
    values = {row.key: 0.0 for row in QUANTITIES}
    for sampled in [key for key in values if key.endswith("_sampled")]:
        del values[sampled]
    values |= {
        "memory_total_bytes": 150_754_820_096.0,
        "memory_used_bytes": 0.6 * GIB,
        "memory_free_bytes": 139.2 * GIB,
        "memory_reserved_bytes": 0.6 * GIB,
        "temperature_celsius": 31.0,
        "memory_temperature_celsius": 36.0,
        "temperature_threshold_slowdown_celsius": 89.0,
        "temperature_threshold_shutdown_celsius": 92.0,
        "temperature_threshold_gpu_max_celsius": 87.0,
        "temperature_threshold_memory_max_celsius": 95.0,
        "power_watts": 76.4,
        "power_instant_watts": 75.9,
        "power_peak_watts": 81.0,
        **dict.fromkeys(("power_limit_management_watts", "power_limit_enforced_watts"), 700.0),
        **dict.fromkeys(("power_limit_default_watts", "power_limit_max_watts"), 700.0),
        "power_limit_min_watts": 200.0,
        "energy_joules_total": 48_211_930.5,
        "clock_sm_hertz": 345e6,
        "clock_graphics_hertz": 345e6,
        "clock_memory_hertz": 3201e6,
        "clock_max_sm_hertz": 1980e6,
        "clock_max_graphics_hertz": 1980e6,
        "clock_max_memory_hertz": 3201e6,
        "throttle_active_gpu_idle": 1.0,
        "pcie_generation": 5.0,
        "pcie_width_lanes": 16.0,
        "pcie_generation_max": 5.0,
        "pcie_width_max_lanes": 16.0,
        "ecc_enabled": 1.0,
    }
    return values | changes


def busy_values(**changes: float) -> dict[str, float]:
    """Return the readings of an H200 at work, with ``changes`` by key."""
    busy = {
        "utilization_ratio": 0.98,
        "memory_utilization_ratio": 0.44,
        "memory_used_bytes": 121.3 * GIB,
        "temperature_celsius": 63.0,
        "memory_temperature_celsius": 71.0,
        "power_watts": 661.8,
        "clock_sm_hertz": 1755e6,
        "throttle_active_gpu_idle": 0.0,
        "throttle_active_sw_power_cap": 1.0,
        "processes": 1.0,
    }
    return h200_values(**(busy | changes))


def card(index: int = 0, values: Mapping[str, float] | None = None, name: str = "NVIDIA H200", lost: str = "") -> Card:
    """Return card ``index``; an idle one unless ``values`` say otherwise."""
    return Card(identity(index, name), h200_values() if values is None else values, (), lost)


def verdict(
    index: int, state: CardState = "ok", workload: WorkloadState = "none", *findings: Finding, age_s: float = 86_400.0
) -> CardVerdict:
    """Return what is concluded about card ``index``."""
    return CardVerdict(index, uuid_of(index), state, workload, TAKEN_WALL_S - age_s, findings)


def probe_record(
    index: int | None,
    probe: ProbeName,
    value: float | None,
    unit: str,
    *,
    dtype: str = "bf16",
    shape: str = "8192x8192x8192",
    status: ProbeStatus = "ok",
    reason: str = "",
    age_s: float = 840.0,
) -> ProbeRecord:
    """Return one finished probe; ``index`` None is the CPU."""
    return ProbeRecord(
        wall_s=TAKEN_WALL_S - age_s,
        gpu=index,
        uuid="cpu" if index is None else uuid_of(index),
        result=ProbeResult(
            probe=probe,
            status=status,
            reason=reason,
            dtype=dtype,
            shape=shape,
            method_version=1,
            value=value,
            unit=unit,
            timing=Timing(0.0167, 0.0166, 0.0169, 0.00005, 30, 10, 2.31, 1.2, 0.012) if value else None,
            allocator_peak_bytes=402_653_184 if value else None,
        ),
        environment=Environment("3.12.4", "2.21.0", "12.5.1", "9.3.0", "580.159.04"),
        device=Device("cpu" if index is None else "gpu", "NVIDIA H200"),
        attribution=None
        if index is None
        else Attribution(
            samples=40,
            sm_clock_median_hertz=1755e6,
            memory_clock_median_hertz=3201e6,
            temperature_max_celsius=58.0,
            power_mean_watts=688.0,
            power_limit_watts=700.0,
            throttle_share={"sw_power_cap": 0.94, "hw_thermal": 0.0},
        ),
        elapsed_s=14.2,
        cpu_s=11.0,
        judged=index is not None,
    )


def card_probes(index: int, slower: float = 1.0, age_s: float = 840.0) -> tuple[ProbeRecord, ...]:
    """Return the two judged probes of card ``index``, at ``slower`` times their usual values."""
    return (
        probe_record(index, "matmul", 659.4e12 * slower, "flop/s", age_s=age_s),
        probe_record(index, "resnet50", 2051.0 * slower, "images/s", shape="256x224x224x3", age_s=age_s),
    )


def history_of(records: tuple[ProbeRecord, ...], *last: float) -> dict[tuple[str, Series], tuple[float, ...]]:
    """Return 20 earlier values for each record, the latest of them at ``last`` times the usual."""
    wobble = (1.0, 1.002, 0.999, 1.001, 0.998, 1.003, 1.0, 0.999, 1.002, 1.001)
    tail = tuple(last)
    return {
        (record.uuid, series_of(record.result)): tuple(
            record.result.value / (tail[-1] if tail else 1.0) * factor for factor in (*wobble, *wobble, *tail)
        )
        for record in records
        if record.result.value is not None
    }


def host_samples(at_s: float = 0.0, busy_cpus: float = 3.1) -> tuple[Sample, ...]:
    """Return what the host collectors gave ``at_s`` seconds later, on a machine of 16 CPUs."""
    return (
        Sample("heatsoak_host_cpu_seconds_total", 9_000.0 + at_s * busy_cpus * 0.8, ("user",)),
        Sample("heatsoak_host_cpu_seconds_total", 1_200.0 + at_s * busy_cpus * 0.2, ("system",)),
        Sample("heatsoak_host_cpu_seconds_total", 70_000.0 + at_s * (16 - busy_cpus), ("idle",)),
        Sample("heatsoak_host_cpus", 16.0),
        Sample("heatsoak_host_load1", 3.4),
        Sample("heatsoak_host_memory_total_bytes", 251.6 * GIB),
        Sample("heatsoak_host_memory_available_bytes", 203.9 * GIB),
        Sample("heatsoak_host_pressure_seconds_total", 80.0 + at_s * 0.004, ("cpu", "some")),
        Sample("heatsoak_host_pressure_seconds_total", 61.0 + at_s * 0.021, ("io", "some")),
        Sample("heatsoak_host_pressure_seconds_total", 0.0, ("memory", "some")),
        Sample("heatsoak_host_disk_read_bytes_total", 9e10 + at_s * 412e6, ("nvme0n1",)),
        Sample("heatsoak_host_disk_written_bytes_total", 4e10 + at_s * 12.1e6, ("nvme0n1",)),
        Sample("heatsoak_host_network_receive_bytes_total", 7e11 + at_s * 1.21e9, ("ens1f0",)),
        Sample("heatsoak_host_network_transmit_bytes_total", 6e11 + at_s * 0.98e9, ("ens1f0",)),
    )


def health(*failing: str) -> tuple[CollectorHealth, ...]:
    """Return the collectors' health; those named in ``failing`` fail."""
    rows = []
    for name in ("cpu", "load", "memory", "pressure", "disk", "network"):
        ok = name not in failing
        errors = {"not_found": 0 if ok else 12, "bad_data": 0}
        last_s = TAKEN_WALL_S if ok else TAKEN_WALL_S - 720
        rows.append(CollectorHealth(name, 4210, ok=ok, last_success_wall_s=last_s, duration_s=0.0004, errors=errors))
    return (*rows, CollectorHealth("hypervisor", 4210, duration_s=0.0001, errors={"not_found": 0, "bad_data": 0}))


def snapshot(
    cards: tuple[Card, ...] = (),
    verdicts: tuple[CardVerdict, ...] = (),
    probes: tuple[ProbeRecord, ...] = (),
    *,
    nvml: NvmlHealth | None = None,
    node: NodeVerdict | None = None,
    probe_history: Mapping[tuple[str, Series], tuple[float, ...]] | None = None,
    failing: tuple[str, ...] = (),
    at_s: float = 0.0,
    hostname: str = "gpu-r07-n12",
) -> Snapshot:
    """Return a snapshot of a healthy node, with what is given in its place."""
    up = NvmlHealth(up=True, driver="580.159.04", nvml="13.580.159", dropped={"temperature_celsius": 2})
    return Snapshot(
        taken_monotonic_s=TAKEN_MONOTONIC_S + at_s,
        taken_wall_s=TAKEN_WALL_S + at_s,
        hostname=hostname,
        rack="R07",
        position="U12",
        cards=cards,
        nvml=nvml or up,
        host=host_samples(at_s),
        health=health(*failing),
        loop=LoopHealth(4210 + int(at_s), 1, 0),
        probes=probes,
        probe_history=probe_history or history_of(probes),
        probe_counts=(
            Sample("heatsoak_probe_runs_total", 31.0, ("0", uuid_of(0), "ok", "")),
            Sample("heatsoak_probe_runs_total", 0.0, ("0", uuid_of(0), "error", "oom")),
        ),
        verdicts=verdicts,
        node_verdict=node or NodeVerdict("ok", TAKEN_WALL_S - 864_000),
    )


def idle_node() -> Snapshot:
    """Return one idle H200."""
    return snapshot((card(0),), (verdict(0),), card_probes(0))


THROTTLED = Finding(
    "thermal",
    "throttled",
    "hw_thermal",
    "Hot: the hardware held the clocks down for 41 % of the last minute, at 88 °C.",
    "Check airflow and the inlet temperature of this slot.",
    TAKEN_WALL_S - 1_260,
    {"share": 0.41, "threshold_share": 0.1, "temperature_celsius": 88.0},
)
DEGRADED = Finding(
    "below_reference",
    "degraded",
    "below_reference",
    "8.4 % below its own reference in three runs in a row (603.9 of 659.4 TFLOP/s), not throttled.",
    "Drain the card and run `heatsoak probe matmul --gpu 5`; replace it if it stays slow.",
    TAKEN_WALL_S - 7_500,
    {"shortfall_ratio": 0.084, "threshold_ratio": 0.03},
)
LOST = Finding(
    "gpu_lost",
    "lost",
    "fallen_off_the_bus",
    "The card fell off the bus: NVML_ERROR_GPU_IS_LOST.",
    "Power-cycle the node; if it comes back, run `heatsoak probe matmul --gpu 6`.",
    TAKEN_WALL_S - 200,
)
INPUT_BOUND = Finding(
    "input_bound",
    "input_bound",
    "cgroup_quota",
    "The card waits for its input: the job's CPU quota of 2 cores is used up in 98 % of the periods.",
    "Raise the job's CPU limit.",
    TAKEN_WALL_S - 2_400,
)


def mixed_node() -> Snapshot:
    """Return 8 cards: one throttled, one degraded, one lost, one starved of input, the others fine."""
    hot = busy_values(
        temperature_celsius=88.0,
        clock_sm_hertz=1170e6,
        power_watts=402.0,
        throttle_active_sw_power_cap=0.0,
        throttle_active_hw_thermal=1.0,
        throttle_active_hw_slowdown=1.0,
    )
    starved = busy_values(
        utilization_ratio=0.30, power_watts=214.0, clock_sm_hertz=1980e6, throttle_active_sw_power_cap=0.0
    )
    cards = (
        card(0, busy_values()),
        card(1, busy_values(power_watts=668.1, temperature_celsius=61.0)),
        card(2, hot),
        card(3, busy_values(power_watts=671.0)),
        card(4, starved),
        card(5, h200_values()),
        card(6, {}, lost="NVML_ERROR_GPU_IS_LOST"),
        card(7, busy_values(temperature_celsius=60.0)),
    )
    verdicts = (
        verdict(0, "ok", "ok"),
        verdict(1, "ok", "ok"),
        verdict(2, "throttled", "ok", THROTTLED, age_s=1_260),
        verdict(3, "ok", "ok"),
        verdict(4, "ok", "input_bound", INPUT_BOUND),
        verdict(5, "degraded", "none", DEGRADED, age_s=7_500),
        verdict(6, "lost", "none", LOST, age_s=200),
        verdict(7, "ok", "ok"),
    )
    slow = card_probes(5, 0.916, age_s=420.0)
    usual = tuple(found for index in (0, 1, 2, 3, 4, 7) for found in card_probes(index, age_s=9_000.0 + 60 * index))
    history = history_of(usual) | history_of(slow, 0.95, 0.92, 0.915, 0.916)
    return snapshot(cards, verdicts, usual + slow, probe_history=history, failing=("disk",))


def cpu_only_node() -> Snapshot:
    """Return a machine without cards that probes its CPU."""
    probes = (
        probe_record(None, "matmul", 71.3e9, "flop/s", dtype="fp32", shape="1024x1024x1024", age_s=12.0),
        probe_record(None, "resnet50", 6.42, "images/s", dtype="fp32", shape="2x64x64x3", age_s=12.0),
    )
    down = NvmlHealth(error="NVML_ERROR_LIBRARY_NOT_FOUND", advice="No NVIDIA driver is installed on this machine.")
    return snapshot(probes=probes, nvml=down, hostname="build-03")


def driver_down_node() -> Snapshot:
    """Return a node whose driver and library do not fit together."""
    advice = "The driver was upgraded while it was loaded: reload the kernel module or reboot."
    down = NvmlHealth(error="NVML_ERROR_LIB_RM_VERSION_MISMATCH", advice=advice, restarts=3)
    finding = Finding(
        "nvml_down",
        "nvml_down",
        "lib_rm_version_mismatch",
        "The NVIDIA driver does not answer: the library is newer than the loaded kernel module.",
        "Drain the node, then reload the nvidia kernel modules or reboot.",
        TAKEN_WALL_S - 95,
    )
    return snapshot(nvml=down, node=NodeVerdict("nvml_down", TAKEN_WALL_S - 95, (finding,)))


def consumer_node() -> Snapshot:
    """Return a desktop card that offers few readings."""
    kept = (
        "utilization_ratio",
        "memory_total_bytes",
        "memory_used_bytes",
        "temperature_celsius",
        "fan_speed_ratio",
        "power_watts",
        "power_limit_enforced_watts",
        "clock_sm_hertz",
        "clock_max_sm_hertz",
        "pstate",
        *(f"throttle_active_{reason}" for reason in THROTTLE_REASONS),
    )
    values = busy_values(
        memory_total_bytes=23.99 * GIB,
        memory_used_bytes=9.7 * GIB,
        power_watts=287.0,
        power_limit_enforced_watts=450.0,
        clock_sm_hertz=2715e6,
        clock_max_sm_hertz=3120e6,
        fan_speed_ratio=0.44,
        throttle_active_sw_power_cap=0.0,
    )
    few = {key: values[key] for key in kept}
    skipped = (
        probe_record(0, "matmul", None, "flop/s", status="skipped", reason="foreign_process", age_s=61.0),
        probe_record(0, "resnet50", 1180.0, "images/s", shape="128x224x224x3", age_s=50_000.0),
    )
    name = "NVIDIA GeForce RTX 4090"
    return snapshot((card(0, few, name),), (verdict(0, "ok", "ok"),), skipped, hostname="ws-lena")


def hostile_node() -> Snapshot:
    """Return a node where every text from outside tries to break out of labels and pages."""
    evil = '<script>alert("1")</script>\n\\"{}\x00\ud800\u202e' + "A" * 300
    who = CardIdentity(0, evil, evil, evil, evil, evil, evil, evil)
    finding = Finding(evil, "ok", evil, evil, evil, TAKEN_WALL_S, {evil: 1.0})
    result = ProbeResult("matmul", "error", f"failed:{evil}", evil, evil, evil, evil, evil, unit=evil)
    found = ProbeRecord(TAKEN_WALL_S, 0, evil, result, Environment(evil, evil, evil, evil, evil))
    return Snapshot(
        taken_monotonic_s=TAKEN_MONOTONIC_S,
        taken_wall_s=TAKEN_WALL_S,
        hostname=evil,
        rack=evil,
        position=evil,
        cards=(Card(who, h200_values(), None, evil),),
        nvml=NvmlHealth(False, evil, evil, evil, evil, dropped={evil: 1}),
        host=(Sample("heatsoak_host_disk_read_bytes_total", 1.0, (evil,)), Sample(evil, 1.0, (evil,))),
        health=(CollectorHealth(evil, 1, ok=False, errors={evil: 1}),),
        probes=(found,),
        verdicts=(CardVerdict(0, evil, "ok", "none", TAKEN_WALL_S, (finding,)),),
        node_verdict=NodeVerdict("ok", TAKEN_WALL_S, (finding,)),
    )


def sixteen_cards(at_s: float = 0.0) -> Snapshot:
    """Return 16 cards at work with every reading and six probes each: the largest page."""
    cards = tuple(card(index, busy_values(power_watts=600.0 + index + at_s)) for index in range(16))
    kinds: tuple[tuple[ProbeName, str], ...] = (
        ("matmul", "bf16"),
        ("matmul", "tf32"),
        ("resnet50", "bf16"),
        ("vgg16", "bf16"),
        ("bandwidth", ""),
        ("fill", ""),
    )
    probes = tuple(
        probe_record(index, probe, 1e12, "flop/s", dtype=dtype) for index in range(16) for probe, dtype in kinds
    )
    return snapshot(cards, tuple(verdict(index, "ok", "ok") for index in range(16)), probes, at_s=at_s)


ALL = {
    "idle": idle_node,
    "mixed": mixed_node,
    "cpu_only": cpu_only_node,
    "driver_down": driver_down_node,
    "consumer": consumer_node,
    "hostile": hostile_node,
    "sixteen": sixteen_cards,
}
