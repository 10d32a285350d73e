"""What the child answers: one JSON document per line on the result descriptor."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import Mapping, Optional, Sequence

from workloads.spec import PROTOCOL_VERSION
from workloads.untyped import Json


@dataclass(frozen=True)
class Environment:
    """The software a result was made with; empty text where it does not apply or is not known."""

    python: str = ""
    tensorflow: str = ""
    cuda: str = ""
    cudnn: str = ""
    driver: str = ""


@dataclass(frozen=True)
class Device:
    """The device a result was made on, as TensorFlow and CUDA see it."""

    kind: str
    name: str = ""
    uuid: str = ""
    pci_bus_id: str = ""
    compute_capability: str = ""
    memory_bytes: int = 0


@dataclass(frozen=True)
class Timing:
    """How long one repeat of ``inner`` steps took, over ``repeats`` timed repeats."""

    median_s: float
    min_s: float
    max_s: float
    mad_s: float
    repeats: int
    inner: int
    first_call_s: float
    warmup_s: float
    host_share: Optional[float] = None
    """Share of a step during which the device waits for the host, 0 to 1; None where not measured."""


@dataclass(frozen=True)
class Result:
    """One measurement's answer. ``value`` is None for every status but ``ok``."""

    probe: str
    status: str
    reason: str = ""
    detail: str = ""
    variant: str = ""
    dtype: str = ""
    shape: str = ""
    mode: str = "graph"
    method_version: int = 0
    value: Optional[float] = None
    unit: str = ""
    timing: Optional[Timing] = None
    window_start_monotonic_s: Optional[float] = None
    window_end_monotonic_s: Optional[float] = None
    allocator_peak_bytes: Optional[int] = None
    figures: Mapping[str, float] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    """Numbers measured one after the other; their units in their names."""


class Emitter:
    """Writes the child's lines to a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def hello(self, environment: Environment, device: Device, startup_s: float) -> None:
        """Say where the child runs, ``startup_s`` seconds after its start."""
        self._write(
            "hello",
            version=PROTOCOL_VERSION,
            environment=asdict(environment),
            device=asdict(device),
            startup_s=startup_s,
        )

    def phase(self, request: int, phase: str, monotonic_s: float) -> None:
        """Say that the request of that index entered ``phase``."""
        self._write("phase", request=request, phase=phase, monotonic_s=monotonic_s)

    def result(self, result: Result) -> None:
        """Give one measurement's answer."""
        self._write("result", **asdict(result))

    def done(self, cpu_s: float, host_peak_bytes: int) -> None:
        """Say that nothing follows, with the child's own cost."""
        self._write("done", cpu_s=cpu_s, host_peak_bytes=host_peak_bytes)

    def _write(self, event: str, **values: Json) -> None:
        line = json.dumps({"event": event, **values}, allow_nan=False) + "\n"
        data = memoryview(line.encode("utf-8", "replace"))
        while data:
            data = data[os.write(self._descriptor, data) :]
