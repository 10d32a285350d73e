"""Readings that take more than one driver call: processes, XID events, sample buffers, GPM, fabric."""

import ctypes
from collections.abc import Collection
from typing import Any, Final

from agent.nvml.door import FUNCTION_NOT_FOUND, NOT_FOUND, NOT_SUPPORTED, Door, RefusedError

ProcessEntry = tuple[int, str, int | None]

_VALUE_FIELDS: Final = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
_PROCESS_GETTERS: Final = {
    "compute": ("DeviceGetComputeRunningProcesses_v3", "DeviceGetComputeRunningProcesses_v2"),
    "mps": ("DeviceGetMPSComputeRunningProcesses_v3", "DeviceGetMPSComputeRunningProcesses_v2"),
    "graphics": ("DeviceGetGraphicsRunningProcesses_v3", "DeviceGetGraphicsRunningProcesses_v2"),
}
_MOST_EVENTS: Final = 64
_FABRIC_STRUCTS: Final = ("c_nvmlGpuFabricInfo_v3_t", "c_nvmlGpuFabricInfo_v2_t")


def number(value_type: int, value: Any) -> float:  # noqa: ANN401 - a ctypes union
    """Return the member of an NVML value union that its type names; not a number for an unknown type."""
    if not 0 <= value_type < len(_VALUE_FIELDS):
        return float("nan")
    return float(getattr(value, _VALUE_FIELDS[value_type]))


class Processes:
    """The processes on one card; a process listed twice counts under its first kind."""

    def __init__(self, door: Door, handle: object) -> None:
        self._door = door
        self._handle = handle
        self.ask_again()

    def ask_again(self) -> None:
        """Ask again for what was not supported."""
        self._getters = {kind: list(functions) for kind, functions in _PROCESS_GETTERS.items()}

    def read(self) -> list[ProcessEntry] | None:
        """Return pid, kind and memory of each; None where the driver does not say.

        Raises:
            RefusedError: the card is lost.
        """
        found: dict[int, ProcessEntry] = {}
        answered = False
        for kind, getters in self._getters.items():
            listed = self._listed(getters)
            answered = answered or (listed is not None and kind != "graphics")
            for entry in listed or ():
                found.setdefault(entry.pid, (entry.pid, kind, entry.usedGpuMemory))
        return list(found.values()) if answered else None

    def _listed(self, getters: list[str]) -> Any:  # noqa: ANN401 - structs of the binding
        while getters:
            answer = self._door.attempt(getters[0], self._handle)
            if not isinstance(answer, RefusedError):
                return answer
            if answer.lost:
                raise answer
            if not answer.unsupported:
                return None
            getters.pop(0)
        return None


class XidWatch:
    """Reports the XID errors of one card through its own event set, polled without waiting."""

    def __init__(self, door: Door, handle: object) -> None:
        """Register for the card's XID errors.

        Raises:
            RefusedError: the driver offers no events for this card.
        """
        self._door = door
        self._set = door.call("EventSetCreate")
        door.call("DeviceRegisterEvents", handle, door.constant("nvmlEventTypeXidCriticalError"), self._set)

    def read(self) -> tuple[int, ...]:
        """Return the codes that came since the previous read, at most 64 of them."""
        codes: list[int] = []
        while len(codes) < _MOST_EVENTS:
            try:
                event = self._door.call("EventSetWait_v2", self._set, 0, expected="TIMEOUT")
            except RefusedError:
                break
            codes.append(int(event.eventData))
        return tuple(codes)


class SampleBuffer:
    """One of the driver's own sample buffers of one card."""

    def __init__(self, door: Door, handle: object, buffer: str) -> None:
        """Name the buffer by its constant.

        Raises:
            RefusedError: the binding does not know the buffer.
        """
        self._door = door
        self._handle = handle
        self._kind = door.constant(buffer)
        self._last_us = 0

    def peak(self) -> float:
        """Return the largest sample since the previous read.

        Raises:
            RefusedError: not offered, or no sample has come since.
        """
        value_type, samples = self._door.call(
            "DeviceGetSamples", self._handle, self._kind, self._last_us, expected="NOT_FOUND"
        )
        if not samples:
            raise RefusedError(NOT_FOUND, "DeviceGetSamples")
        self._last_us = max(sample.timeStamp for sample in samples)
        return max(number(value_type, sample.sampleValue) for sample in samples)


class GpmSampler:
    """GPM metrics of one card, between two samples that it keeps in turn."""

    def __init__(self, door: Door, handle: object) -> None:
        """Take two sample buffers.

        Raises:
            RefusedError: the card or the driver has no GPM.
        """
        self._door = door
        self._handle = handle
        if not door.call("GpmQueryDeviceSupport", handle).isSupportedDevice:
            raise RefusedError(NOT_SUPPORTED, "GpmQueryDeviceSupport")
        self._samples = [door.call("GpmSampleAlloc"), door.call("GpmSampleAlloc")]
        self._taken = False

    def read(self, metrics: Collection[int]) -> dict[int, float | RefusedError]:
        """Return each metric since the previous read; empty on the first one.

        Raises:
            RefusedError: a sample cannot be taken.
        """
        self._samples.reverse()
        self._door.call("GpmSampleGet", self._handle, self._samples[1])
        if not self._taken:
            self._taken = True
            return {}
        ask = self._door.constant("c_nvmlGpmMetricsGet_t")()
        ask.version = self._door.constant("NVML_GPM_METRICS_GET_VERSION")
        ask.numMetrics = len(metrics)
        ask.sample1, ask.sample2 = self._samples
        for slot, metric in enumerate(metrics):
            ask.metrics[slot].metricId = metric
        self._door.call("GpmMetricsGet", ask)
        return {answer.metricId: self._value(answer) for answer in ask.metrics[: len(metrics)]}

    def _value(self, answer: Any) -> float | RefusedError:  # noqa: ANN401 - a struct of the binding
        if answer.nvmlReturn:
            return self._door.refuse(answer.nvmlReturn, "GpmMetricsGet")
        return float(answer.value)


def fabric(door: Door, handle: object) -> Any:  # noqa: ANN401 - a struct of the binding
    """Return the card's NVLink fabric information: ``state``, ``status`` and, from v3 on, ``healthSummary``.

    Raises:
        RefusedError: the card has no fabric, or the driver does not tell.
    """
    refusal = RefusedError(FUNCTION_NOT_FOUND, "DeviceGetGpuFabricInfoV")
    for name in _FABRIC_STRUCTS:
        struct = getattr(door.nvml, name, None)
        if struct is None:
            continue
        info = struct()
        answer = door.attempt("DeviceGetGpuFabricInfoV", handle, ctypes.byref(info))
        if not isinstance(answer, RefusedError):
            if info.state:
                return info
            raise RefusedError(NOT_SUPPORTED, "DeviceGetGpuFabricInfoV")
        refusal = answer
    raise refusal
