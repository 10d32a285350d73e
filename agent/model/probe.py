"""What a probe is asked and what it answers: the documented JSON between agent and probe child."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from agent.model.vocabulary import ProbeStatus

PROTOCOL_VERSION: Final = 1
ProbeName = Literal["matmul", "resnet50", "vgg16", "pipeline", "bandwidth", "fill", "memory"]
DeviceKind = Literal["gpu", "cpu"]


class ProbeKind(msgspec.Struct, frozen=True):
    """One kind of probe: what its value means and the metric that carries it."""

    name: ProbeName
    metric: str
    unit: str
    help: str


PROBE_KINDS: Final[Mapping[str, ProbeKind]] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            ProbeKind(
                "matmul",
                "heatsoak_probe_matmul_flops_per_second",
                "flop/s",
                "Throughput of the last good matrix product probe, 2*n^3 operations a product.",
            ),
            ProbeKind(
                "resnet50",
                "heatsoak_probe_resnet50_images_per_second",
                "images/s",
                "Training throughput of the last good ResNet-50 step probe.",
            ),
            ProbeKind(
                "vgg16",
                "heatsoak_probe_vgg16_images_per_second",
                "images/s",
                "Training throughput of the last good VGG16 step probe.",
            ),
            ProbeKind(
                "pipeline",
                "heatsoak_probe_pipeline_images_per_second",
                "images/s",
                "Images per second of the last good input pipeline probe.",
            ),
            ProbeKind(
                "bandwidth",
                "heatsoak_probe_bandwidth_bytes_per_second",
                "byte/s",
                "Bytes moved per second in the last good bandwidth probe.",
            ),
            ProbeKind(
                "fill",
                "heatsoak_probe_fill_bytes",
                "byte",
                "Device memory written and read back without a difference in the last good fill probe.",
            ),
            ProbeKind(
                "memory",
                "heatsoak_probe_memory_peak_bytes",
                "byte",
                "Most memory that TensorFlow's allocator held in the last good training memory probe.",
            ),
        )
    }
)


class ProbeRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """One measurement to make; 0 and empty text leave the choice to the probe's own rules."""

    probe: ProbeName
    dtype: str = ""
    """``bf16``, ``fp16``, ``tf32``, ``fp32`` or ``fp64``."""
    size: int = 0
    """Matrix side, or image side in pixels."""
    batch: int = 0
    mode: Literal["graph", "xla"] = "graph"
    seconds: float = 0.0
    """Length of the judged window."""
    options: Mapping[str, str | float | bool] = MappingProxyType({})


class ChildSpec(msgspec.Struct, frozen=True):
    """All that a probe child is told, as one JSON document on its standard input."""

    version: int
    device: DeviceKind
    requests: tuple[ProbeRequest, ...]
    gpu_uuid: str = ""
    pci_bus_id: str = ""
    memory_limit_bytes: int = 0
    threads: int = 0
    cache_dir: str = ""
    seed: int = 0
    companion_uuids: tuple[str, ...] = ()
    """Further cards that a step is spread over, beside ``gpu_uuid``."""
    replicas: int = 1
    """Devices that a step is spread over: all cards, or logical devices of the CPU."""
    reserve_all: bool = False
    """Whether TensorFlow takes the whole of each card at once, as it does by default; else it grows as needed."""


class Environment(msgspec.Struct, frozen=True):
    """The software a result was made with; empty text where it does not apply."""

    python: str = ""
    tensorflow: str = ""
    cuda: str = ""
    cudnn: str = ""
    driver: str = ""


class Device(msgspec.Struct, frozen=True):
    """The device a result was made on, as TensorFlow and CUDA see it."""

    kind: DeviceKind
    name: str = ""
    uuid: str = ""
    pci_bus_id: str = ""
    compute_capability: str = ""
    memory_bytes: int = 0


class Timing(msgspec.Struct, frozen=True):
    """How long one repeat took, in seconds, over ``repeats`` timed repeats of ``inner`` steps each."""

    median_s: float
    min_s: float
    max_s: float
    mad_s: float
    repeats: int
    inner: int
    first_call_s: float
    warmup_s: float
    host_share: float | None = None
    """Share of a step spent on the host before the device works, 0 to 1; None where not measured."""


class ProbeResult(msgspec.Struct, frozen=True, tag_field="event", tag="result"):
    """One measurement's answer. ``value`` is None for every status but ``ok``."""

    probe: ProbeName
    status: ProbeStatus
    reason: str = ""
    detail: str = ""
    """One line for people: what failed, or how many elements differ and where."""
    variant: str = ""
    """What distinguishes figures of one probe, as ``host_to_device``."""
    dtype: str = ""
    shape: str = ""
    """As ``8192x8192x8192`` or ``256x224x224x3``."""
    mode: str = "graph"
    method_version: int = 0
    value: float | None = None
    unit: str = ""
    timing: Timing | None = None
    window_start_monotonic_s: float | None = None
    window_end_monotonic_s: float | None = None
    """The judged window on CLOCK_MONOTONIC, which the agent shares."""
    allocator_peak_bytes: int | None = None
    figures: Mapping[str, float] = MappingProxyType({})
    """Further measured numbers, their units in their names."""
    notes: Mapping[str, str] = MappingProxyType({})
    series: Mapping[str, tuple[float, ...]] = MappingProxyType({})
    """Numbers measured one after the other, as each step's time; their units in their names."""


class Hello(msgspec.Struct, frozen=True, tag_field="event", tag="hello"):
    """The child's first line: where it runs."""

    version: int
    environment: Environment
    device: Device
    startup_s: float = 0.0


class Phase(msgspec.Struct, frozen=True, tag_field="event", tag="phase"):
    """Progress: which request entered which phase."""

    request: int
    phase: str
    monotonic_s: float


class Done(msgspec.Struct, frozen=True, tag_field="event", tag="done"):
    """The child's last line."""

    cpu_s: float = 0.0
    host_peak_bytes: int = 0


ChildEvent = Hello | Phase | ProbeResult | Done


class Attribution(msgspec.Struct, frozen=True):
    """What the card, the first of several, did during the judged window, sampled by the agent; None where not read."""

    samples: int = 0
    sm_clock_median_hertz: float | None = None
    memory_clock_median_hertz: float | None = None
    temperature_max_celsius: float | None = None
    power_mean_watts: float | None = None
    power_limit_watts: float | None = None
    memory_used_peak_bytes: float | None = None
    pcie_generation_max: float | None = None
    pcie_width_max: float | None = None
    throttle_share: Mapping[str, float] = MappingProxyType({})
    """Share of the window during which each reason was active, 0 to 1, by reason."""
    contended: bool = False
    """Another process used a card of the run meanwhile: the value says nothing about the card."""
    host_cpu_share: float | None = None
    """Share of the host's CPU time that other processes than the probe's took, 0 to 1."""


class ProbeRecord(msgspec.Struct, frozen=True):
    """One finished measurement with its circumstances: the row that history, exporters and rules read."""

    wall_s: float
    """When it ended, seconds since the Unix epoch."""
    gpu: int | None
    """NVML index, None on the CPU."""
    uuid: str
    """The card's UUID with ``GPU-``, or ``cpu``."""
    result: ProbeResult
    environment: Environment = Environment()
    device: Device | None = None
    attribution: Attribution | None = None
    elapsed_s: float = 0.0
    """From spawn to this result."""
    cpu_s: float | None = None
    judged: bool = False
    """Whether the value may be compared with a reference: not throttled by heat, not contended, right kind."""
    trigger: str = "schedule"
    """``schedule``, ``suspicion``, ``command``, ``burnin`` or ``bench``."""
