"""What a probe is handed, and how it words its results."""

from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Callable, Dict, Mapping, Optional, Sequence

import tensorflow as tf

from workloads import dtypes, failure
from workloads.emit import Result
from workloads.precheck import Machine
from workloads.spec import Request
from workloads.timing import Clock, Measurement, Plan, median
from workloads.untyped import Tensor

CPU_BATCHES = 10
"""Other processes disturb a CPU's batches one by one; the median of many leaves them out."""


@dataclass(frozen=True)
class Context:
    """One request, the machine it runs on, and the ways to tell time and progress."""

    request: Request
    machine: Machine
    clock: Clock
    phase: Callable[[str], None]
    labels: Dict[str, str] = field(default_factory=dict)
    """What is known so far of the measurement (dtype, shape, variant): a failure says it too."""

    def describe(self, **labels: str) -> None:
        """Note what is being measured, for the result or the failure to come."""
        self.labels.update(labels)

    def number_format(self, on_gpu: str = "bf16", on_cpu: str = "fp32") -> dtypes.NumberFormat:
        """Return the number format asked for, else the probe's own; sets whether fp32 may compute in TF32.

        Raises:
            ProbeFailure: the card has no such format.
        """
        number = dtypes.FORMATS[self.request.dtype or (on_gpu if self.machine.on_gpu else on_cpu)]
        self.describe(dtype=number.name)
        if self.machine.on_gpu and self.machine.capability_major < number.oldest_capability:
            raise failure.unsupported(
                "%s needs compute capability %d, the card has %s"
                % (number.name, number.oldest_capability, self.machine.info.compute_capability)
            )
        tf.config.experimental.enable_tensor_float_32_execution(number.name == "tf32")
        return number

    def free_bytes(self) -> int:
        """Return the memory that this measurement may take: what is usable, less what the allocator has given out.

        The allocator keeps what it once took from the card, so the card's own count of free memory says too little.
        """
        return max(0, self.machine.usable_bytes - (self.allocator_held_bytes() or 0))

    def plan(self, gpu_window_s: float, cpu_window_s: float = 0.5, *, gpu_batches: int = 3) -> Plan:
        """Return how long to measure: the window asked for, else the probe's own; many short batches on a CPU."""
        if self.machine.on_gpu:
            return Plan(window_s=self.request.seconds or gpu_window_s, batches=gpu_batches)
        return Plan(window_s=self.request.seconds or cpu_window_s, settle_s=0.0, batches=CPU_BATCHES, average=median)

    def result(
        self,
        method_version: int,
        value: float,
        unit: str,
        *,
        measurement: Optional[Measurement] = None,
        figures: Optional[Mapping[str, float]] = None,
        notes: Optional[Mapping[str, str]] = None,
        series: Optional[Mapping[str, Sequence[float]]] = None,
    ) -> Result:
        """Return a good result of this request."""
        load = {"load_s": measurement.load_s} if measurement else {}
        return Result(
            probe=self.request.probe,
            status="ok",
            mode=self.request.mode,
            method_version=method_version,
            value=value,
            unit=unit,
            timing=measurement.timing if measurement else None,
            window_start_monotonic_s=measurement.window_start_s if measurement else None,
            window_end_monotonic_s=measurement.window_end_s if measurement else None,
            allocator_peak_bytes=self.allocator_peak_bytes(),
            figures={**load, **(figures or {})},
            notes=notes or {},
            series=series or {},
            variant=self.labels.get("variant", ""),
            dtype=self.labels.get("dtype", ""),
            shape=self.labels.get("shape", ""),
        )

    def allocator_peak_bytes(self) -> Optional[int]:
        """Return the most that TensorFlow's allocator held since this request began, None where it keeps no count."""
        return self._allocator("peak")

    def allocator_held_bytes(self) -> Optional[int]:
        """Return the memory that TensorFlow's allocator has given out now, None where it keeps no count."""
        return self._allocator("current")

    def reset_allocator_peak(self) -> None:
        """Let the allocator's peak start anew from what is still in use.

        Steps and their variables refer to each other, so what the request before held is only given back when
        it is collected.
        """
        gc.collect()
        try:
            tf.config.experimental.reset_memory_stats(self.machine.device[1:])
        except (ValueError, tf.errors.OpError):
            return

    def _allocator(self, key: str) -> Optional[int]:
        try:
            return int(tf.config.experimental.get_memory_info(self.machine.device[1:])[key])
        except (ValueError, tf.errors.OpError):
            return None


def check_finite(tensor: Tensor, what: str) -> None:
    """Check that no element is NaN or infinite.

    Raises:
        ProbeFailure: one is, with how many.
    """
    finite = tf.math.is_finite(tf.cast(tensor, tf.float32) if tensor.dtype.size == 2 else tensor)
    if bool(tf.reduce_all(finite)):
        return
    wrong = int(tf.reduce_sum(tf.cast(tf.logical_not(finite), tf.int64)))
    raise failure.wrong_answer(failure.NOT_FINITE, "%d of %d elements of %s" % (wrong, int(tf.size(tensor)), what))


class Blocker:
    """A long kernel that the host share is measured behind: a chain of fp32 products."""

    SIDE = 4096
    CHAIN = 16

    def __init__(self, device: str) -> None:
        with tf.device(device):
            left = tf.random.stateless_normal([self.SIDE, self.SIDE], seed=[7, 1])
            right = tf.random.stateless_normal([self.SIDE, self.SIDE], seed=[7, 2]) / self.SIDE**0.5

        def chain() -> Tensor:
            with tf.device(device):
                product = left
                for _ in range(self.CHAIN):
                    product = tf.linalg.matmul(product, right)
                return product[:1, :1]

        self._chain = tf.function(chain, autograph=False)
        self._last: Tensor = None

    def start(self) -> None:
        """Enqueue the chain."""
        self._last = self._chain()

    def finish(self) -> None:
        """Wait for the chain."""
        self._last.numpy()
