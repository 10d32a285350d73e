"""Memory of a training step: the allocator's peak, what optimiser state adds, and what happens when it does not fit.

The step, its batch and its number format are those of the ResNet-50 probe. With the specification's memory limit a
large card plays a smaller one: what does not fit ends as ``error/oom`` with the size that was asked for.
"""

from __future__ import annotations

import gc
from typing import Dict, Iterator, Tuple

import numpy as np

from workloads import failure, training
from workloads.context import Context
from workloads.dtypes import NumberFormat
from workloads.emit import Result

METHOD_VERSION = 1
STEPS = 3


def run(context: Context) -> Iterator[Result]:
    """Train a few steps and yield the allocator's peak; the option ``optimizer`` = ``adam`` adds Adam's.

    Raises:
        ProbeFailure: the allocator keeps no count here.
    """
    number = context.number_format()
    context.phase("build")
    peak, figures = _peak_of(context, number, "sgd")
    if context.request.text("optimizer") == "adam":
        with_adam, of_adam = _peak_of(context, number, "adam")
        figures.update(
            {"sgd_peak_bytes": float(peak), "optimizer_added_bytes": of_adam["held_bytes"] - figures["held_bytes"]}
        )
        figures["held_bytes"] = of_adam["held_bytes"]
        peak = with_adam
    yield context.result(METHOD_VERSION, float(peak), "byte", figures=figures)


def _peak_of(context: Context, number: NumberFormat, optimizer: str) -> Tuple[int, Dict[str, float]]:
    """Return the allocator's peak over a few steps, and what stays held between steps."""
    context.reset_allocator_peak()
    context.phase("train %s" % optimizer)
    step = training.build(context, number, optimizer)
    for _ in range(STEPS):
        step.start()
        step.finish()
    gc.collect()
    peak, held = context.allocator_peak_bytes(), context.allocator_held_bytes()
    if peak is None or held is None:
        raise failure.unsupported("TensorFlow's allocator keeps no count on %s" % context.machine.device)
    parameters = sum(int(np.prod(variable.shape)) for variable in step.parameters.variables)
    figures = {"held_bytes": float(held), "parameter_bytes": 4.0 * parameters}
    if context.machine.driver is not None:
        used = context.machine.info.memory_bytes - context.machine.driver.free_bytes()
        figures["device_used_bytes"] = float(used)
    return peak, figures
