"""Why a measurement gave no number: a status and a reason out of the agent's closed vocabulary."""

from __future__ import annotations

import re
from typing import Optional

TENSORFLOW_MISSING = "tensorflow_missing"
NOT_A_GPU_BUILD = "not_a_gpu_build"
MISSING_LIBRARY = "missing_library"
DRIVER_TOO_OLD = "driver_too_old"
COMPUTE_CAPABILITY = "compute_capability"
NO_GPU = "no_gpu"
CUDA_INIT_FAILED = "cuda_init_failed"
RAN_ON_CPU = "ran_on_cpu"
WRONG_DEVICE = "wrong_device"
OOM = "oom"
FAILED = "failed"
TOO_FEW_IMAGES = FAILED + ":TooFewImages"
EXACT_MISMATCH = "exact_mismatch"
BOUND_EXCEEDED = "bound_exceeded"
NOT_FINITE = "not_finite"
MEMORY_MISMATCH = "memory_mismatch"

ITEM_BYTES = {
    "half": 2, "bfloat16": 2, "float": 4, "double": 8, "bool": 1,
    "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
}  # fmt: skip
_SHAPE = re.compile(r"OOM when allocating tensor with shape\[([0-9,]*)\] and type (\w+)")
_BYTES = re.compile(r"(?:[Aa]llocating|allocate|of size) ([0-9.]+) ?(bytes|[KMGT]iB)")
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_NO_KERNEL = ("No OpKernel was registered", "Could not find device for node", "no supported kernel", "No registered '")
_DETAIL_CHARACTERS = 300


class ProbeFailure(Exception):  # noqa: N818 - an outcome that is reported, more than an error
    """A measurement that ends without a number: ``status``, ``reason`` and one line of ``detail``."""

    def __init__(self, status: str, reason: str, detail: str = "") -> None:
        super().__init__("%s/%s: %s" % (status, reason, detail))
        self.status = status
        self.reason = reason
        self.detail = detail


def error(reason: str, detail: str = "") -> ProbeFailure:
    """Return the failure of a measurement that could not be made."""
    return ProbeFailure("error", reason, detail)


def unsupported(detail: str) -> ProbeFailure:
    """Return the failure of a measurement that this card or TensorFlow build does not offer."""
    return ProbeFailure("skipped", "unsupported", detail)


def wrong_answer(reason: str, detail: str) -> ProbeFailure:
    """Return the failure of a measurement whose result is not the right one."""
    return ProbeFailure("wrong_answer", reason, detail)


def classify(raised: BaseException) -> ProbeFailure:
    """Return what an exception raised by TensorFlow means for the measurement."""
    if isinstance(raised, ProbeFailure):
        return raised
    name, text = type(raised).__name__, str(raised)
    if name in ("ResourceExhaustedError", "MemoryError"):
        size = failed_bytes(text)
        return error(OOM if size is None else "oom:%d" % size, one_line(text))
    if name == "CudaError":
        return error(CUDA_INIT_FAILED + ":%s" % getattr(raised, "name", ""), one_line(text))
    if any(mark in text for mark in _NO_KERNEL):
        return unsupported(one_line(text))
    return error(FAILED + ":%s" % name, one_line(text))


def failed_bytes(text: str) -> Optional[int]:
    """Return the size in bytes of the allocation that ``text`` says failed, None where it names none."""
    shape = _SHAPE.search(text)
    if shape and shape.group(2) in ITEM_BYTES:
        size = ITEM_BYTES[shape.group(2)]
        for side in filter(None, shape.group(1).split(",")):
            size *= int(side)
        return size
    amount = _BYTES.search(text)
    return int(float(amount.group(1)) * _UNITS[amount.group(2)]) if amount else None


def one_line(text: str) -> str:
    """Return the first words of ``text`` on one line."""
    return " ".join(text.split())[:_DETAIL_CHARACTERS]
