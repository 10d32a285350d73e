"""What became of a request whose result never came, and whether a result is from the card asked for."""

import re
import signal
from typing import Final

import msgspec

from agent.model.probe import Device, ProbeRequest, ProbeResult
from agent.model.snapshot import CardIdentity
from agent.model.text import clean_label
from agent.model.vocabulary import ProbeStatus
from agent.probes.child import ChildExit

LONGEST_DETAIL: Final = 300
_FATAL: Final = re.compile(r"^F\d{4} |Check failed|^Fatal Python error")

ENVIRONMENT_REASONS: Final = frozenset(
    {
        "tensorflow_missing",
        "not_a_gpu_build",
        "missing_library",
        "driver_too_old",
        "compute_capability",
        "no_gpu",
        "cuda_init_failed",
        "ran_on_cpu",
        "interpreter_missing",
    }
)
"""Reasons that say something about the software, nothing about a card."""


class Failure(msgspec.Struct, frozen=True):
    """Why there is no value."""

    status: ProbeStatus
    reason: str
    detail: str = ""


def failure_of(ended: ChildExit, *, oom_killed: bool) -> Failure:
    """Say why a child that ended so left a request without a result.

    ``oom_killed`` is whether the kernel killed any process for lack of memory meanwhile: without that
    evidence a SIGKILL is just a SIGKILL.
    """
    said = clean_label(last_word(ended.output), LONGEST_DETAIL)
    match ended.ended:
        case "not_started":
            return Failure("error", "interpreter_missing", clean_label(ended.detail, LONGEST_DETAIL))
        case "deadline":
            return Failure("timeout", "deadline", f"ended after {ended.elapsed_s:.1f} s")
        case "aborted":
            return Failure("aborted", ended.detail)
        case "bad_result":
            return Failure("error", "bad_result", clean_label(ended.detail, LONGEST_DETAIL))
        case "done":
            return Failure("error", "bad_result", "the child said it was done without a result for this request")
        case "exited":
            return _death(ended.code, said, oom_killed=oom_killed)


def last_word(output: str) -> str:
    """Return the line in which a child said why it died, else its last one; empty where it said nothing.

    A failed assertion is followed by pages of its stack.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return next(filter(_FATAL.search, reversed(lines)), lines[-1] if lines else "")


def _death(code: int | None, said: str, *, oom_killed: bool) -> Failure:
    if oom_killed and code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return Failure("error", "oom_killed", said)
    if code is not None and code < 0:
        return Failure("error", f"crashed:{_signal_name(-code)}", said)
    return Failure("error", f"exit_code:{code}", said)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def failed_result(request: ProbeRequest, failure: Failure) -> ProbeResult:
    """Return the result of a request that has no answer."""
    return ProbeResult(
        probe=request.probe,
        status=failure.status,
        reason=failure.reason,
        detail=failure.detail,
        dtype=request.dtype,
        mode=request.mode,
    )


def without_value(result: ProbeResult, failure: Failure) -> ProbeResult:
    """Return a result whose number cannot be believed as the failure that took it."""
    return msgspec.structs.replace(
        result, status=failure.status, reason=failure.reason, detail=failure.detail, value=None, unit="", timing=None
    )


def device_fault(device: Device | None, asked: CardIdentity | None) -> Failure | None:
    """Say why a good result is not from the card asked for (None: from the CPU); None where it is."""
    if asked is None:
        return None
    if device is None:
        return Failure("error", "bad_result", "the child did not say which device it used")
    if device.kind != "gpu":
        return Failure("error", "ran_on_cpu", "the child reports a CPU as its device")
    if device.uuid and _uuid(device.uuid) != _uuid(asked.uuid):
        return Failure("error", "wrong_device", f"CUDA opened {device.uuid}, asked for {asked.uuid}")
    if device.pci_bus_id and asked.pci_bus_id and _pci(device.pci_bus_id) != _pci(asked.pci_bus_id):
        return Failure("error", "wrong_device", f"CUDA opened {device.pci_bus_id}, asked for {asked.pci_bus_id}")
    if not (device.uuid or (device.pci_bus_id and asked.pci_bus_id)):
        return Failure("error", "wrong_device", "the child could not tell which card CUDA opened")
    return None


def _uuid(text: str) -> str:
    return text.lower().removeprefix("gpu-")


def _pci(text: str) -> str:
    """Return a PCI address with a domain of four digits, however long the source writes it."""
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:].zfill(4)}:{rest}"
