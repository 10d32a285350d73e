"""Bandwidth of the device's memory, and between host and device.

* ``device_copy``: b = a, one read and one write of the array.
* ``device_triad``: c = a + b, two reads and one write: STREAM's traffic; its multiplication would cost nothing here.
* ``host_to_device``, ``device_to_host``: one array across the bus, counted once.

The arrays are far larger than any cache. Each device step is one operation called on its own, outside any graph, so
that there is nothing to fold, share or leave out; the copies across the bus are the transfers that TensorFlow itself
puts between operations on both sides of a function. Source and destination are compared afterwards. Whether the host's
side was page-locked is asked of the driver, and said.
"""

from __future__ import annotations

from functools import partial
from typing import Callable, Iterator, Mapping, Optional, Tuple

import numpy as np
import tensorflow as tf

from workloads import failure
from workloads.context import Context
from workloads.emit import Result
from workloads.timing import measure
from workloads.untyped import Tensor

METHOD_VERSION = 3
WINDOW_S = 1.0
LARGEST_ARRAY_BYTES, CPU_ARRAY_BYTES, LARGEST_HOST_BYTES = 2**32, 2**26, 2**29
ITEM_BYTES = 4
HOST = "/CPU:0"


class Step:
    """The timed work: one operation on whole arrays."""

    def __init__(self, operation: Callable[[], Tensor]) -> None:
        self._operation = operation
        self.last: Tensor = None

    def start(self) -> None:
        """Enqueue the operation."""
        self.last = self._operation()

    def finish(self) -> None:
        """Wait for the last operation by reading one element of its result."""
        self.last[-1].numpy()


def run(context: Context) -> Iterator[Result]:
    """Measure each way, one result each.

    Raises:
        ProbeFailure: what arrived differs from what was sent.
    """
    context.phase("build")
    yield from _on_device(context)
    if context.machine.on_gpu:
        yield from _across(context)


def _on_device(context: Context) -> Iterator[Result]:
    device, items = context.machine.device, array_bytes(context) // ITEM_BYTES
    context.describe(shape=str(items))
    with tf.device(device):
        first, second = (tf.random.stateless_uniform([items], seed=[context.machine.seed, part]) for part in (1, 2))

    def add() -> Tensor:
        with tf.device(device):
            return tf.raw_ops.AddV2(x=first, y=second)

    copy = Step(lambda: snapshot(device, first))
    yield _timed(context, copy, "device_copy", 2 * items, lambda: _same(copy.last, first))
    copy.last = None
    triad = Step(add)
    yield _timed(context, triad, "device_triad", 3 * items, lambda: _same(triad.last - second, first, 1e-6))


def _across(context: Context) -> Iterator[Result]:
    device = context.machine.device
    items = min(LARGEST_HOST_BYTES, array_bytes(context)) // ITEM_BYTES
    context.describe(shape=str(items))
    on_host, on_device = both_sides(items, context.machine.seed, device)
    to_device, to_host = transfer(device), transfer(HOST)
    send = Step(lambda: to_device(on_host))
    notes = {"host_memory": _kind_of(context, on_host)}
    yield _timed(context, send, "host_to_device", items, lambda: _same(send.last, on_device), notes)
    receive = Step(lambda: to_host(on_device))
    receive.start()
    notes = {"host_memory": _kind_of(context, receive.last)}
    yield _timed(context, receive, "device_to_host", items, lambda: _same(receive.last, on_host), notes)


def both_sides(items: int, seed: int, device: str) -> Tuple[Tensor, Tensor]:
    """Return the same array on the host and on the device.

    TensorFlow takes page-locked memory for what the host makes and the device reads within one function.
    """

    def make() -> Tuple[Tensor, Tensor]:
        with tf.device(HOST):
            made = tf.random.stateless_uniform([items], seed=[seed, 3])
        with tf.device(device):
            return made, tf.raw_ops.Snapshot(input=made)

    made, copied = tf.function(make, autograph=False)()
    return made, copied


def transfer(device: str) -> Callable[[Tensor], Tensor]:
    """Return a function that gives its argument, copied to ``device``."""
    traced: Callable[[Tensor], Tensor] = tf.function(partial(snapshot, device), autograph=False)
    return traced


def snapshot(device: str, values: Tensor) -> Tensor:
    """Return a copy of the values on ``device``."""
    with tf.device(device):
        return tf.raw_ops.Snapshot(input=values)


def array_bytes(context: Context) -> int:
    """Return the size of one array: an eighth of the free memory, at most 4 GiB (64 MiB on a CPU)."""
    largest = LARGEST_ARRAY_BYTES if context.machine.on_gpu else CPU_ARRAY_BYTES
    return max(4096, min(largest, context.free_bytes() // 8) // 4096 * 4096)


def _timed(
    context: Context,
    step: Step,
    variant: str,
    items_moved: int,
    is_right: Callable[[], bool],
    notes: Optional[Mapping[str, str]] = None,
) -> Result:
    context.describe(variant=variant)
    measurement = measure(step, context.plan(WINDOW_S), context.clock, context.phase)
    context.phase("check")
    if not is_right():
        raise failure.wrong_answer(failure.MEMORY_MISMATCH, "%s: what was written differs from what was read" % variant)
    return context.result(
        METHOD_VERSION,
        items_moved * ITEM_BYTES / measurement.step_s,
        "byte/s",
        measurement=measurement,
        notes=notes,
    )


def _same(one: Tensor, other: Tensor, tolerance: float = 0.0) -> bool:
    if tolerance == 0.0 and one.device != other.device:
        return np.array_equal(one.numpy(), other.numpy())
    return bool(tf.reduce_max(tf.abs(one - other)) <= tolerance)


def _kind_of(context: Context, on_host: Tensor) -> str:
    if context.machine.driver is None:
        return "pageable"
    address = np.asarray(memoryview(on_host)).ctypes.data
    return "pinned" if context.machine.driver.is_pinned(address) else "pageable"
