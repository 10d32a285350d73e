"""Every GPU reading is one row of one table.

Reader, exporter, docs/METRICS.md, the configuration's on/off list and the dashboard tests derive from
it; adding a quantity is adding a row.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agent.model.quantity import (
    MILLI,
    Call,
    Derived,
    Fabric,
    Field,
    Gpm,
    LinkSum,
    Peak,
    Quantity,
    Source,
    counter,
    flag,
    gauge,
    share,
)
from agent.model.throttle import THROTTLE_ROWS
from agent.model.vocabulary import Tier

_MEGA: Final = 1e6
_KIBI: Final = 1024.0
_MEBI: Final = 1048576.0
_MAX_CELSIUS: Final = 150.0
_MAX_WATTS: Final = 5000.0
_MAX_HERTZ: Final = 2e10
_MAX_BYTES: Final = 2.0**45
_ALL_LINKS: Final = 0xFFFFFFFF
_V2: Final = ("nvmlMemory_v2",)


def _memory(key: str, text: str, attribute: str) -> Quantity:
    sources = [Call("DeviceGetMemoryInfo", _V2, attribute)]
    if attribute != "reserved":
        sources.append(Call("DeviceGetMemoryInfo", (), attribute))
    bound = "" if attribute == "total" else "memory_total_bytes"
    return gauge(key, text, "fast", *sources, high=_MAX_BYTES, at_most=bound)


def _threshold(threshold: str, constant: str) -> Quantity:
    return gauge(
        f"temperature_threshold_{threshold}_celsius",
        "Temperature at which the driver acts, by threshold.",
        "static",
        Call("DeviceGetTemperatureThreshold", (f"NVML_TEMPERATURE_THRESHOLD_{constant}",)),
        metric="temperature_threshold_celsius",
        high=_MAX_CELSIUS,
        threshold=threshold,
    )


def _power_limit(limit: str, tier: Tier, *sources: Source) -> Quantity:
    return gauge(
        f"power_limit_{limit}_watts",
        "Power limit: management as set, enforced after all limiters, default, min and max as the board allows.",
        tier,
        *sources,
        metric="power_limit_watts",
        divisor=MILLI,
        high=_MAX_WATTS,
        limit=limit,
    )


def _clock(group: str, text: str, function: str, tier: Tier, clock: str, constant: str) -> Quantity:
    return gauge(
        f"{group}_{clock}_hertz",
        text,
        tier,
        Call(function, (constant,)),
        metric=f"{group}_hertz",
        scale=_MEGA,
        high=_MAX_HERTZ,
        clock=clock,
    )


_CLOCKS: Final = tuple(
    _clock("clock", "Clock now.", "DeviceGetClockInfo", "fast", clock, f"NVML_CLOCK_{constant}")
    for clock, constant in (("sm", "SM"), ("memory", "MEM"), ("graphics", "GRAPHICS"), ("video", "VIDEO"))
)
_MAX_CLOCKS: Final = tuple(
    _clock("clock_max", "Highest clock of the card.", "DeviceGetMaxClockInfo", "static", clock, f"NVML_CLOCK_{name}")
    for clock, name in (("sm", "SM"), ("memory", "MEM"), ("graphics", "GRAPHICS"))
)
_APPLICATION_CLOCKS: Final = tuple(
    _clock(
        "application_clock",
        "Clock that applications ask for.",
        "DeviceGetApplicationsClock",
        "static",
        clock,
        f"NVML_CLOCK_{name}",
    )
    for clock, name in (("graphics", "GRAPHICS"), ("memory", "MEM"))
)


def _ecc(kind: str, since: str) -> Quantity:
    return counter(
        f"ecc_errors_{kind}_{since}",
        "ECC memory errors: volatile since the driver was loaded, aggregate over the card's life.",
        "slow",
        Call(
            "DeviceGetTotalEccErrors",
            (f"NVML_MEMORY_ERROR_TYPE_{kind.upper()}", f"NVML_{since.upper()}_ECC"),
        ),
        metric="ecc_errors_total",
        type=kind,
        counter=since,
    )


def _retired(cause: str, field: str) -> Quantity:
    return counter(
        f"retired_pages_{cause}",
        "Memory pages retired, by cause.",
        "slow",
        Field(field),
        metric="retired_pages_total",
        cause=cause,
    )


def _remapped(cause: str, item: int) -> Quantity:
    return counter(
        f"remapped_rows_{cause}",
        "Memory rows remapped, by cause.",
        "slow",
        Call("DeviceGetRemappedRows", (), "", item),
        metric="remapped_rows_total",
        cause=cause,
    )


def _nvlink_errors(kind: str, *sources: Source) -> Quantity:
    return counter(
        f"nvlink_errors_{kind}",
        "NVLink errors summed over the card's links, by kind.",
        "slow",
        *sources,
        metric="nvlink_errors_total",
        kind=kind,
    )


def _gpm_share(key: str, text: str, metric: str) -> Quantity:
    return share(key, f"{text} over the last slow interval.", "slow", Gpm(f"NVML_GPM_METRIC_{metric}"))


def _gpm_rate(key: str, text: str, metric: str) -> Quantity:
    source = Gpm(f"NVML_GPM_METRIC_{metric}")
    return gauge(key, f"{text} over the last slow interval.", "slow", source, scale=_MEBI, high=1e13)


_UTILIZATION: Final = (
    share(
        "utilization_ratio",
        "Share of the last sampling interval with a kernel running.",
        "fast",
        Call("DeviceGetUtilizationRates", (), "gpu"),
    ),
    share(
        "memory_utilization_ratio",
        "Share of the last sampling interval with device memory read or written.",
        "fast",
        Call("DeviceGetUtilizationRates", (), "memory"),
    ),
    share(
        "encoder_utilization_ratio",
        "Share of time the video encoder worked.",
        "fast",
        Call("DeviceGetEncoderUtilization", (), "", 0),
    ),
    share(
        "decoder_utilization_ratio",
        "Share of time the video decoder worked.",
        "fast",
        Call("DeviceGetDecoderUtilization", (), "", 0),
    ),
)
_MEMORY: Final = (
    _memory("memory_total_bytes", "Device memory installed.", "total"),
    _memory("memory_used_bytes", "Device memory in use, what the driver reserves left out.", "used"),
    _memory("memory_free_bytes", "Device memory free.", "free"),
    _memory("memory_reserved_bytes", "Device memory reserved by driver and firmware.", "reserved"),
)
_TEMPERATURE: Final = (
    gauge(
        "temperature_celsius",
        "Core temperature.",
        "fast",
        Call("DeviceGetTemperature", ("NVML_TEMPERATURE_GPU",)),
        Call("DeviceGetTemperatureV", ("NVML_TEMPERATURE_GPU",)),
        high=_MAX_CELSIUS,
    ),
    gauge(
        "memory_temperature_celsius",
        "Device memory temperature.",
        "fast",
        Field("NVML_FI_DEV_MEMORY_TEMP"),
        low=1,
        high=_MAX_CELSIUS,
    ),
    _threshold("slowdown", "SLOWDOWN"),
    _threshold("shutdown", "SHUTDOWN"),
    _threshold("gpu_max", "GPU_MAX"),
    _threshold("memory_max", "MEM_MAX"),
    share("fan_speed_ratio", "Fan speed as a share of its full speed.", "fast", Call("DeviceGetFanSpeed")),
)
_POWER: Final = (
    gauge(
        "power_watts",
        "Power draw, averaged by the driver over up to one second.",
        "fast",
        Field("NVML_FI_DEV_POWER_AVERAGE"),
        Call("DeviceGetPowerUsage"),
        divisor=MILLI,
        high=_MAX_WATTS,
    ),
    gauge(
        "power_instant_watts",
        "Power draw at the moment of reading.",
        "fast",
        Field("NVML_FI_DEV_POWER_INSTANT"),
        divisor=MILLI,
        high=_MAX_WATTS,
    ),
    gauge(
        "power_peak_watts",
        "Highest power draw in the driver's sample buffer since the previous reading of it, about two seconds.",
        "samples",
        Peak("NVML_TOTAL_POWER_SAMPLES"),
        divisor=MILLI,
        high=_MAX_WATTS,
    ),
    _power_limit(
        "management", "slow", Field("NVML_FI_DEV_POWER_REQUESTED_LIMIT"), Call("DeviceGetPowerManagementLimit")
    ),
    _power_limit("enforced", "fast", Call("DeviceGetEnforcedPowerLimit")),
    _power_limit("default", "static", Call("DeviceGetPowerManagementDefaultLimit")),
    _power_limit("min", "static", Call("DeviceGetPowerManagementLimitConstraints", (), "", 0)),
    _power_limit("max", "static", Call("DeviceGetPowerManagementLimitConstraints", (), "", 1)),
    counter(
        "energy_joules_total",
        "Energy used since the driver was loaded.",
        "slow",
        Field("NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION"),
        Call("DeviceGetTotalEnergyConsumption"),
        divisor=MILLI,
        high=1e15,
    ),
)
_HEALTH: Final = (
    *(_ecc(kind, since) for kind in ("corrected", "uncorrected") for since in ("volatile", "aggregate")),
    _remapped("correctable", 0),
    _remapped("uncorrectable", 1),
    flag(
        "row_remap_pending",
        "Whether a row waits for a reset to be remapped.",
        "slow",
        Call("DeviceGetRemappedRows", (), "", 2),
    ),
    flag("row_remap_failed", "Whether remapping a row failed.", "slow", Call("DeviceGetRemappedRows", (), "", 3)),
    _retired("single_bit", "NVML_FI_DEV_RETIRED_SBE"),
    _retired("double_bit", "NVML_FI_DEV_RETIRED_DBE"),
    flag(
        "retired_pages_pending",
        "Whether a page waits for a reset to be retired.",
        "slow",
        Field("NVML_FI_DEV_RETIRED_PENDING"),
    ),
    gauge(
        "recovery_action",
        "What the driver asks for: 0 nothing, 1 GPU reset, 2 node reboot, 3 drain P2P, 4 drain and reset, "
        "5 recover the IMEX domain, 6 bus reset, 7 system reboot.",
        "slow",
        Field("NVML_FI_DEV_GET_GPU_RECOVERY_ACTION"),
        high=15,
    ),
    counter("xid_events_total", "XID errors the driver reported since the agent's start.", "fast", Derived("xid")),
    gauge("xid_last_code", "Code of the last XID error since the agent's start.", "fast", Derived("xid"), high=1e6),
    gauge(
        "xid_last_timestamp_seconds",
        "When the last XID error came, seconds since the Unix epoch.",
        "fast",
        Derived("xid"),
        high=1e11,
    ),
)
_LINKS: Final = (
    gauge(
        "pcie_generation",
        "PCIe generation the link runs at; it falls while idle.",
        "slow",
        Call("DeviceGetCurrPcieLinkGeneration"),
        low=1,
        high=16,
    ),
    gauge("pcie_width_lanes", "PCIe lanes in use.", "slow", Call("DeviceGetCurrPcieLinkWidth"), low=1, high=64),
    gauge(
        "pcie_generation_max",
        "Highest PCIe generation that card and slot allow.",
        "static",
        Call("DeviceGetMaxPcieLinkGeneration"),
        low=1,
        high=16,
    ),
    gauge(
        "pcie_width_max_lanes",
        "Most PCIe lanes that card and slot allow.",
        "static",
        Call("DeviceGetMaxPcieLinkWidth"),
        low=1,
        high=64,
    ),
    counter(
        "pcie_replays_total",
        "PCIe packets sent again.",
        "slow",
        Field("NVML_FI_DEV_PCIE_REPLAY_COUNTER"),
        Call("DeviceGetPcieReplayCounter"),
    ),
    counter(
        "pcie_correctable_errors_total",
        "PCIe errors corrected by the link.",
        "slow",
        Field("NVML_FI_DEV_PCIE_COUNT_CORRECTABLE_ERRORS"),
    ),
    gauge("nvlink_active_links", "NVLink links that are up.", "slow", LinkSum("NVML_FI_DEV_NVLINK_GET_STATE"), high=64),
    _nvlink_errors(
        "replay", LinkSum("NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY"), Field("NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL")
    ),
    _nvlink_errors(
        "recovery",
        LinkSum("NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY"),
        LinkSum("NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS"),
        Field("NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
    ),
    _nvlink_errors(
        "crc", LinkSum("NVML_FI_DEV_NVLINK_ERROR_DL_CRC"), Field("NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL")
    ),
    counter(
        "nvlink_transmit_bytes_total",
        "Payload sent over all NVLink links.",
        "slow",
        Field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", _ALL_LINKS),
        scale=_KIBI,
    ),
    counter(
        "nvlink_receive_bytes_total",
        "Payload received over all NVLink links.",
        "slow",
        Field("NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", _ALL_LINKS),
        scale=_KIBI,
    ),
    gauge(
        "fabric_state",
        "NVLink fabric registration: 1 not started, 2 in progress, 3 completed.",
        "slow",
        Fabric("state"),
        low=1,
        high=3,
    ),
    gauge(
        "fabric_status",
        "NVML error code the fabric registration ended with, 0 for success.",
        "slow",
        Fabric("status"),
        high=999,
    ),
    gauge(
        "fabric_health",
        "NVLink fabric health: 1 healthy, 2 unhealthy, 3 limited capacity.",
        "slow",
        Fabric("healthSummary"),
        low=1,
        high=3,
    ),
)
_ACTIVITY: Final = (
    _gpm_share("sm_active_ratio", "Share of streaming multiprocessors that were busy", "SM_UTIL"),
    _gpm_share("sm_occupancy_ratio", "Resident warps as a share of the most that fit", "SM_OCCUPANCY"),
    _gpm_share("tensor_active_ratio", "Share of time tensor cores worked", "ANY_TENSOR_UTIL"),
    _gpm_share("dram_active_ratio", "Device memory bandwidth used as a share of the most possible", "DRAM_BW_UTIL"),
    _gpm_share("fp64_active_ratio", "Share of time FP64 pipes worked", "FP64_UTIL"),
    _gpm_share("fp32_active_ratio", "Share of time FP32 pipes worked", "FP32_UTIL"),
    _gpm_share("fp16_active_ratio", "Share of time FP16 pipes worked", "FP16_UTIL"),
    _gpm_rate("pcie_transmit_bytes_per_second", "PCIe traffic from the card", "PCIE_TX_PER_SEC"),
    _gpm_rate("pcie_receive_bytes_per_second", "PCIe traffic to the card", "PCIE_RX_PER_SEC"),
)
_TENANCY: Final = (
    gauge("processes", "Processes on the card.", "fast", Derived("processes"), high=1e6),
    gauge(
        "process_memory_bytes",
        "Device memory of all processes on the card.",
        "fast",
        Derived("processes"),
        high=_MAX_BYTES,
    ),
    flag("mig_enabled", "Whether the card is split by MIG.", "slow", Call("DeviceGetMigMode", (), "", 0)),
    flag("ecc_enabled", "Whether ECC protects the memory.", "slow", Call("DeviceGetEccMode", (), "", 0)),
    flag(
        "persistence_enabled",
        "Whether the driver stays loaded without a client.",
        "slow",
        Call("DeviceGetPersistenceMode"),
    ),
    gauge(
        "compute_mode",
        "Who may compute: 0 anyone, 1 one thread, 2 nobody, 3 one process.",
        "slow",
        Call("DeviceGetComputeMode"),
        high=3,
    ),
)

QUANTITIES: Final[tuple[Quantity, ...]] = (
    *_UTILIZATION,
    *_MEMORY,
    *_TEMPERATURE,
    *_POWER,
    *_CLOCKS,
    *_MAX_CLOCKS,
    *_APPLICATION_CLOCKS,
    *THROTTLE_ROWS,
    *_HEALTH,
    *_LINKS,
    *_ACTIVITY,
    *_TENANCY,
)
BY_KEY: Final[Mapping[str, Quantity]] = MappingProxyType({row.key: row for row in QUANTITIES})
