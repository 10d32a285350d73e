"""One child's run: check the machine, make each measurement, say what came of it."""

from __future__ import annotations

import importlib
import resource
from typing import Mapping, Tuple

from workloads import failure, precheck
from workloads.emit import Device, Emitter, Result
from workloads.spec import Request, Spec
from workloads.timing import Clock

MODULES: Mapping[str, str] = {
    "matmul": "workloads.matmul",
    "resnet50": "workloads.training",
    "vgg16": "workloads.training",
    "pipeline": "workloads.pipeline",
    "bandwidth": "workloads.bandwidth",
    "fill": "workloads.fill",
    "memory": "workloads.memory",
}
"""The module behind each probe; its ``run(context)`` yields results. Imported once TensorFlow is known to load."""

REPLICATED_PROBES = ("resnet50", "vgg16")

XLA_PROBES = ("resnet50", "vgg16", "pipeline", "memory")


def run(spec: Spec, emitter: Emitter, clock: Clock, started_s: float, modules: Mapping[str, str] = MODULES) -> None:
    """Answer every request of ``spec``: hello, phases and results, done."""
    tf = None
    precheck.prepare_environment(spec)
    try:
        tf = precheck.import_tensorflow(with_keras=spec.wants_keras)
        machine = precheck.open_machine(tf, spec)
    except Exception as raised:  # noqa: BLE001 - whatever the machine answers, the agent gets a result for it
        failed = failure.classify(raised)
        emitter.hello(precheck.environment(tf), Device(kind=spec.device), clock.monotonic_s() - started_s)
        for request in spec.requests:
            emitter.result(_failed(request, failed, {}))
    else:
        emitter.hello(precheck.environment(tf), machine.info, clock.monotonic_s() - started_s)
        for index, request in enumerate(spec.requests):
            _answer(index, request, machine, emitter, clock, modules)
    emitter.done(*_cost())


def _answer(
    index: int, request: Request, machine: precheck.Machine, emitter: Emitter, clock: Clock, modules: Mapping[str, str]
) -> None:
    context_module = importlib.import_module("workloads.context")
    context = context_module.Context(
        request=request,
        machine=machine,
        clock=clock,
        phase=lambda name: emitter.phase(index, name, clock.monotonic_s()),
    )
    context.reset_allocator_peak()
    try:
        _check_offered(request, machine)
        for result in importlib.import_module(modules[request.probe]).run(context):
            emitter.result(result)
    except Exception as raised:  # noqa: BLE001 - one measurement's error must not cost the others
        emitter.result(_failed(request, failure.classify(raised), context.labels))


def _check_offered(request: Request, machine: precheck.Machine) -> None:
    if request.mode == "xla" and request.probe not in XLA_PROBES:
        raise failure.unsupported("%s has no XLA mode" % request.probe)
    if len(machine.devices) > 1 and request.probe not in REPLICATED_PROBES:
        raise failure.unsupported("%s runs on one device, not on %d" % (request.probe, len(machine.devices)))


def _failed(request: Request, failed: failure.ProbeFailure, labels: Mapping[str, str]) -> Result:
    return Result(
        probe=request.probe,
        status=failed.status,
        reason=failed.reason,
        detail=failed.detail,
        variant=labels.get("variant", ""),
        dtype=labels.get("dtype", request.dtype),
        shape=labels.get("shape", ""),
        mode=request.mode,
    )


def _cost() -> Tuple[float, int]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024
