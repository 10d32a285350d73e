"""From the bytes a probe child writes to its documented events; whatever breaks the form is refused.

The child is foreign software under test: nothing it says is believed before it fits the form, the closed
vocabularies and what hardware can do.
"""

import math
import re
from collections.abc import Iterator
from typing import Final

import msgspec

from agent.errors import HeatsoakError
from agent.model.probe import PROBE_KINDS, PROTOCOL_VERSION, ChildEvent, Done, Hello, Phase, ProbeResult, Timing
from agent.model.vocabulary import reason_is_known

MOST_LINE_BYTES: Final = 1 << 20
MOST_EVENTS: Final = 10_000
"""More events than any run has: a child that talks without end is ended."""

MOST_SERIES: Final = 8
MOST_POINTS: Final = 10_000
"""Longest series that is taken."""

_HIGHEST_VALUE: Final = {"flop/s": 1e19, "images/s": 1e9, "byte/s": 1e17, "byte": 1e16}
_LONGEST_S: Final = 1e7
_WORD = re.compile(r"[A-Za-z0-9_.:+-]{0,64}")
_DECODER = msgspec.json.Decoder(ChildEvent)


class BadResultError(HeatsoakError):
    """A child's answer breaks the documented form."""


class EventDecoder:
    """Takes the child's bytes as they come and gives its events, line by line."""

    def __init__(self) -> None:
        """Start before the first byte."""
        self._rest = b""
        self._events = 0

    def feed(self, data: bytes) -> Iterator[ChildEvent]:
        """Yield the event of each line that ``data`` completes.

        Raises:
            BadResultError: A line breaks the form, is too long, or there are too many.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_LINE_BYTES:
            raise BadResultError(f"an answer line has more than {MOST_LINE_BYTES} bytes, without an end")
        for line in lines:
            self._events += 1
            if self._events > MOST_EVENTS:
                raise BadResultError(f"the child sent more than {MOST_EVENTS} events")
            yield decode_event(line)

    @property
    def incomplete(self) -> bool:
        """Return whether the last line has no end yet."""
        return bool(self._rest)


def decode_event(line: bytes) -> ChildEvent:
    """Return the event that one line holds.

    Raises:
        BadResultError: The line is not one event of the documented form with plausible numbers.
    """
    if len(line) > MOST_LINE_BYTES:
        raise BadResultError(f"an answer line has {len(line)} bytes; at most {MOST_LINE_BYTES} are read")
    try:
        event = _DECODER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadResultError(f"not a documented event ({error}): {_start(line)}") from error
    fault = _fault_of(event)
    if fault:
        raise BadResultError(f"event {type(event).__struct_config__.tag!r}: {fault}")
    return event


def _fault_of(event: ChildEvent) -> str:
    """Return what is implausible about an event, or empty text."""
    match event:
        case Hello():
            return _hello_fault(event)
        case Phase():
            return "" if 0 <= event.request < MOST_EVENTS else f"request {event.request} is not an index of a request"
        case Done():
            return _range_fault("cpu_s", event.cpu_s, 0.0, _LONGEST_S) or _range_fault(
                "host_peak_bytes", event.host_peak_bytes, 0, _HIGHEST_VALUE["byte"]
            )
        case ProbeResult():
            return _result_fault(event)


def _hello_fault(hello: Hello) -> str:
    if hello.version != PROTOCOL_VERSION:
        return f"protocol version {hello.version}; this agent speaks {PROTOCOL_VERSION}"
    return _range_fault("startup_s", hello.startup_s, 0.0, _LONGEST_S) or _range_fault(
        "memory_bytes", hello.device.memory_bytes, 0, _HIGHEST_VALUE["byte"]
    )


def _result_fault(result: ProbeResult) -> str:
    """Return the first fault of a result: wording, value, timing, window."""
    if not reason_is_known(result.status, result.reason):
        return f"reason {result.reason!r} is not documented for status {result.status}"
    for name in ("variant", "dtype", "shape", "mode"):
        if not _WORD.fullmatch(getattr(result, name)):
            return f"{name} {getattr(result, name)!r} is not a short word"
    return (
        _value_fault(result)
        or (_timing_fault(result.timing) if result.timing else "")
        or _window_fault(result)
        or next((f"figure {key!r} is {value}" for key, value in result.figures.items() if not math.isfinite(value)), "")
        or _series_fault(result)
    )


def _value_fault(result: ProbeResult) -> str:
    if (result.value is not None) != (result.status == "ok"):
        return f"value {result.value} with status {result.status}; ok has a value, the others have none"
    if result.value is None:
        return ""
    unit = PROBE_KINDS[result.probe].unit
    if result.unit != unit:
        return f"unit {result.unit!r} of {result.probe}; expected {unit!r}"
    if not 0 < result.value <= _HIGHEST_VALUE[unit]:
        return f"value {result.value} {unit} lies beyond what hardware does"
    return ""


def _timing_fault(timing: Timing) -> str:
    for name in ("median_s", "min_s", "max_s", "mad_s", "first_call_s", "warmup_s"):
        fault = _range_fault(name, getattr(timing, name), 0.0, _LONGEST_S)
        if fault:
            return fault
    if not timing.min_s <= timing.median_s <= timing.max_s:
        return f"median {timing.median_s} s lies outside {timing.min_s}..{timing.max_s} s"
    if timing.repeats < 1 or timing.inner < 1:
        return f"{timing.repeats} repeats of {timing.inner} steps; at least one of each is timed"
    return "" if timing.host_share is None else _range_fault("host_share", timing.host_share, 0.0, 1.0)


def _window_fault(result: ProbeResult) -> str:
    start_s, end_s = result.window_start_monotonic_s, result.window_end_monotonic_s
    if (start_s is None) != (end_s is None):
        return "a judged window with one end only"
    if start_s is not None and end_s is not None and not 0 <= start_s <= end_s:
        return f"judged window from {start_s} to {end_s} s"
    return ""


def _series_fault(result: ProbeResult) -> str:
    if len(result.series) > MOST_SERIES:
        return f"{len(result.series)} series; at most {MOST_SERIES} are taken"
    for name, values in result.series.items():
        if not _WORD.fullmatch(name):
            return f"series {name[:80]!r} is not a short word"
        if len(values) > MOST_POINTS:
            return f"series {name!r} has {len(values)} numbers; at most {MOST_POINTS} are taken"
        if not all(map(math.isfinite, values)):
            return f"series {name!r} holds a number that is not finite"
    return ""


def _range_fault(name: str, value: float, low: float, high: float) -> str:
    return "" if low <= value <= high else f"{name} is {value}; expected {low:g} to {high:g}"


def _start(line: bytes) -> str:
    return repr(line[:80].decode("utf-8", "replace"))
