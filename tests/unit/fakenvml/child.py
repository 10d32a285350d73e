"""Run as a program: evaluates expressions over pynvml and prints one JSON answer for each.

In an expression every name of pynvml is known, ``card`` is the list of handles that could be opened, and helpers
stand below. An NVML error becomes ``{"error": NAME}``.
"""

import contextlib
import ctypes
import json
import sys
import time
from collections.abc import Callable
from typing import Any

import pynvml

Answer = Any
"""What the binding returns: numbers, texts, structs, handles."""

_ERROR_NAMES = {
    getattr(pynvml, name): name.removeprefix("NVML_ERROR_") for name in dir(pynvml) if name.startswith("NVML_ERROR_")
}


def attempt(ask: Callable[[], Any]) -> Answer:
    """Return what ``ask`` returns, or its NVML error as a mapping."""
    try:
        return plain(ask())
    except pynvml.NVMLError as error:
        return {"error": _ERROR_NAMES.get(error.value, str(error.value))}


def plain(answer: Answer) -> Answer:
    """Return an answer of the binding as JSON can say it."""
    if isinstance(answer, ctypes.Array):
        return [plain(element) for element in answer]
    if hasattr(answer, "_fields_"):
        return {name: plain(getattr(answer, name)) for name, *_ in answer._fields_}
    if isinstance(answer, pynvml.nvmlFriendlyObject):
        return {name: plain(value) for name, value in vars(answer).items()}
    if isinstance(answer, ctypes.c_uint):
        return answer.value
    if isinstance(answer, bytes):
        return answer.decode()
    if isinstance(answer, (list, tuple)):
        return [plain(element) for element in answer]
    return answer if isinstance(answer, (int, float, str, dict, type(None))) else str(answer)


def handles() -> list[Any]:
    """Return the handles of all cards, with None for one that cannot be opened."""
    found: list[Any] = [None] * pynvml.nvmlDeviceGetCount()
    for index in range(len(found)):
        with contextlib.suppress(pynvml.NVMLError):
            found[index] = pynvml.nvmlDeviceGetHandleByIndex(index)
    return found


def field(handle: Answer, *ids: Answer) -> list[Any]:
    """Return each field value by its type's member, or its error."""
    members = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
    return [
        {"error": _ERROR_NAMES[value.nvmlReturn]}
        if value.nvmlReturn
        else getattr(value.value, members[value.valueType])
        for value in pynvml.nvmlDeviceGetFieldValues(handle, list(ids))
    ]


def samples(handle: Answer, kind: int, last_us: int = 0) -> list[Any]:
    """Return time and value of each sample of a buffer."""
    _, found = pynvml.nvmlDeviceGetSamples(handle, kind, last_us)
    return [[sample.timeStamp, sample.sampleValue.uiVal] for sample in found]


def gpm(handle: Answer, *metrics: int, seconds: float = 0.05) -> list[Any]:
    """Return GPM metrics between two samples some seconds apart."""
    ask = pynvml.c_nvmlGpmMetricsGet_t()
    ask.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    ask.numMetrics = len(metrics)
    ask.sample1, ask.sample2 = pynvml.nvmlGpmSampleAlloc(), pynvml.nvmlGpmSampleAlloc()
    pynvml.nvmlGpmSampleGet(handle, ask.sample1)
    time.sleep(seconds)
    pynvml.nvmlGpmSampleGet(handle, ask.sample2)
    for slot, metric in enumerate(metrics):
        ask.metrics[slot].metricId = metric
    pynvml.nvmlGpmMetricsGet(ask)
    return [
        {"error": _ERROR_NAMES[answer.nvmlReturn]} if answer.nvmlReturn else answer.value
        for answer in ask.metrics[: len(metrics)]
    ]


def register(*cards: Answer) -> Answer:
    """Return an event set registered for the XID errors of some cards."""
    events = pynvml.nvmlEventSetCreate()
    for handle in cards:
        pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
    return events


def waited(events: Answer, timeout_ms: int) -> list[int]:
    """Return index and code of the next event."""
    event = pynvml.nvmlEventSetWait_v2(events, timeout_ms)
    return [pynvml.nvmlDeviceGetIndex(event.device), event.eventData]


def took(ask: Callable[[], Any]) -> float:
    """Return how many seconds a call took."""
    start = time.monotonic()
    ask()
    return time.monotonic() - start


def main() -> None:
    """Print the answer to each line of standard input at once; the first is what the initialisation says."""
    names: dict[str, Any] = {**vars(pynvml), **globals()}
    init = attempt(pynvml.nvmlInit)
    names["card"] = [] if init else handles()
    print(json.dumps(init), flush=True)
    for line in sys.stdin:
        print(json.dumps(attempt(lambda line=line: eval(line, names))), flush=True)  # type: ignore[misc]


if __name__ == "__main__":
    main()
