"""What a benchmark's result file holds: the machine, and every measurement with its circumstances."""

from typing import Final, Literal

import msgspec

from agent.model.probe import DeviceKind, ProbeRecord

SCHEMA_VERSION: Final = 1
Extent = Literal["quick", "full", "smoke"]


class CardFacts(msgspec.Struct, frozen=True):
    """One card as the driver describes it; None and empty text where it does not say."""

    index: int
    id: str
    """Eight hexadecimal digits made from the card's UUID: the same card has the same ones, and they tell no more."""
    name: str = ""
    compute_capability: str = ""
    vbios: str = ""
    memory_bytes: float | None = None
    power_limit_watts: float | None = None
    power_limit_default_watts: float | None = None
    clock_sm_max_hertz: float | None = None
    clock_memory_max_hertz: float | None = None
    ecc_enabled: bool | None = None
    mig_enabled: bool | None = None
    pcie_generation_max: float | None = None
    pcie_width_max_lanes: float | None = None


class Machine(msgspec.Struct, frozen=True):
    """Where the measurements were made; None and empty text where it is not known or does not apply."""

    device: DeviceKind
    python: str = ""
    tensorflow: str = ""
    cuda: str = ""
    cudnn: str = ""
    driver: str = ""
    cpu: str = ""
    """Model name of the processor."""
    cpus: int = 0
    """How many logical CPUs the benchmark may use."""
    memory_bytes: int | None = None
    shm_bytes: int | None = None
    hypervisor: str = ""
    kernel: str = ""
    operating_system: str = ""
    container: str = ""
    """Runtime or image id where the benchmark ran in a container."""
    topology: tuple[str, ...] = ()
    """How cards are linked, one line for each pair of them."""
    cards: tuple[CardFacts, ...] = ()


class Step(msgspec.Struct, frozen=True):
    """One part of the plan that was carried out: its name, its circumstances, and all its records."""

    name: str
    """As ``matmul`` or ``resnet50/bf16/xla``; a plan has each name once."""
    records: tuple[ProbeRecord, ...]
    """Their ``uuid`` is the card's :attr:`CardFacts.id`, or ``cpu``; other identifiers are left out."""
    memory_limit_bytes: int = 0
    """Hard limit of TensorFlow's allocator, as of a smaller card; 0 for none."""


class BenchResult(msgspec.Struct, frozen=True, tag_field="kind", tag="heatsoak-bench"):
    """One result file."""

    schema_version: int
    heatsoak: str
    """Version of heatsoak."""
    label: str
    """What people call this result; by default the card's name and TensorFlow's version."""
    extent: Extent
    started_wall_s: float
    machine: Machine
    steps: tuple[Step, ...] = ()
    complete: bool = False
    """Whether every step of the plan is there."""
    memory_limit_bytes: int = 0
    """The limit that the whole benchmark ran under, 0 for none."""
