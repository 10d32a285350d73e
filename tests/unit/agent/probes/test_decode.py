"""What of a child's answer is believed: the documented form with plausible numbers, nothing else."""

import math

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.model.probe import PROBE_KINDS, ChildEvent, Done, Hello, Phase, ProbeResult, Timing
from agent.model.vocabulary import PROBE_REASONS, reason_is_known
from agent.probes.decode import (
    MOST_EVENTS,
    MOST_LINE_BYTES,
    MOST_POINTS,
    MOST_SERIES,
    BadResultError,
    EventDecoder,
    decode_event,
)

TIMING = Timing(0.1, 0.09, 0.11, 0.001, 10, 20, 1.0, 1.0, 0.01)
GOOD = ProbeResult(
    probe="matmul",
    status="ok",
    dtype="bf16",
    shape="8192x8192x8192",
    method_version=1,
    value=6.6e14,
    unit="flop/s",
    timing=TIMING,
    window_start_monotonic_s=10.0,
    window_end_monotonic_s=13.0,
    figures={"load_s": 0.1},
    notes={},
    series={"step_s": (0.1, 0.2)},
)


def encode(event: msgspec.Struct) -> bytes:
    """Return the line of an event."""
    return msgspec.json.encode(event)


def changed(**changes: object) -> bytes:
    """Return the line of a good result with changes."""
    return encode(msgspec.structs.replace(GOOD, **changes))


@pytest.mark.parametrize("event", [GOOD, Phase(0, "warmup", 12.5), Done(3.0, 10**9)])
def test_documented_events_pass_unchanged(event: ChildEvent) -> None:
    """What fits the form is given on as it is."""
    assert decode_event(encode(event)) == event


@pytest.mark.parametrize(
    "line",
    [
        changed(value=None),
        changed(status="error", reason="oom", value=1.0),
        changed(status="error", reason="moon", value=None),
        changed(status="error", reason="", value=None),
        changed(reason="oom"),
        changed(unit="TFLOP/s"),
        changed(value=0.0),
        changed(value=-1.0),
        changed(value=1e30),
        changed(dtype='bf16",evil="1'),
        changed(variant="x" * 65),
        changed(shape="8192 x\n8192"),
        changed(timing=msgspec.structs.replace(TIMING, median_s=0.2)),
        changed(timing=msgspec.structs.replace(TIMING, min_s=-0.1)),
        changed(timing=msgspec.structs.replace(TIMING, repeats=0)),
        changed(timing=msgspec.structs.replace(TIMING, host_share=1.5)),
        changed(series={"step_s": (0.1,) * (MOST_POINTS + 1)}),
        changed(series={f"s{index}": () for index in range(MOST_SERIES + 1)}),
        changed(series={"step s": (0.1,)}),
        changed(series={"step_s": (0.1,)}).replace(b"[0.1]", b"[1e999]"),
        changed(series={"step_s": (0.1,)}).replace(b"[0.1]", b"[null]"),
        changed(window_end_monotonic_s=None),
        changed(window_start_monotonic_s=14.0),
        encode(Phase(-1, "warmup", 1.0)),
        encode(Done(cpu_s=-1.0)),
        encode(Done(host_peak_bytes=-1)),
        b'{"event":"hello","version":2,"environment":{},"device":{"kind":"gpu"}}',
        b'{"event":"hello","version":1,"environment":{},"device":{"kind":"tpu"}}',
        b'{"event":"farewell"}',
        b'{"event":"done","cpu_s":NaN}',
        b'{"event":"done","cpu_s":Infinity}',
        b'{"event":"done","cpu_s":1e999}',
        b'{"event":"done","cpu_s":"1"}',
        b'{"event":"phase","request":0,"phase":"\xff","monotonic_s":1}',
        b'{"event":"phase","request":0,"phase":"\\ud800","monotonic_s":1}',
        b"[]",
        b"",
        b"[" * 100_000,
        b" " * (MOST_LINE_BYTES + 1),
    ],
    ids=lambda line: line[:40].decode("latin-1"),
)
def test_whatever_breaks_the_form_is_refused(line: bytes) -> None:
    """Wrong words, implausible numbers and broken JSON all end as one kind of error that says what is wrong."""
    with pytest.raises(BadResultError, match=r".{10}"):
        decode_event(line)


@pytest.mark.parametrize("reason", ["missing_library:libcusolver.so.11", "oom:1073741824", "no_gpu"])
def test_documented_reasons_may_carry_a_value(reason: str) -> None:
    """A reason is known by what stands before its colon."""
    line = changed(status="error", reason=reason, value=None, timing=None)
    assert decode_event(line) == msgspec.structs.replace(GOOD, status="error", reason=reason, value=None, timing=None)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_an_event_or_the_one_error(data: bytes) -> None:
    """No input raises anything else."""
    try:
        decode_event(data)
    except BadResultError:
        return


@settings(max_examples=200, deadline=None)
@given(
    probe=st.sampled_from(sorted(PROBE_KINDS)),
    status=st.sampled_from(sorted(PROBE_REASONS)),
    reason=st.sampled_from(["", *(r for reasons in PROBE_REASONS.values() for r in reasons), "moon"]),
    value=st.none() | st.floats(),
    unit=st.sampled_from([kind.unit for kind in PROBE_KINDS.values()]),
)
def test_what_passes_keeps_the_promise(probe: str, status: str, reason: str, value: float | None, unit: str) -> None:
    """A decoded result has a documented reason, and a finite positive value in its unit exactly when it is ok."""
    line = changed(probe=probe, status=status, reason=reason, value=value, unit=unit)
    try:
        result = decode_event(line)
    except BadResultError:
        return
    assert isinstance(result, ProbeResult)
    assert reason_is_known(result.status, result.reason)
    assert (result.value is not None) == (result.status == "ok")
    if result.value is not None:
        assert math.isfinite(result.value)
        assert result.value > 0
        assert result.unit == PROBE_KINDS[result.probe].unit


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 200), max_size=20))
def test_events_do_not_depend_on_how_the_bytes_are_cut(cuts: list[int]) -> None:
    """The same bytes give the same events, in whatever pieces they come."""
    events = [Phase(0, "warmup", 1.0), GOOD, Done(1.0, 2)]
    data = b"".join(encode(event) + b"\n" for event in events)
    decoder = EventDecoder()
    seen: list[ChildEvent] = []
    for cut in cuts:
        seen += decoder.feed(data[:cut])
        data = data[cut:]
    seen += decoder.feed(data)
    assert seen == events
    assert not decoder.incomplete


def test_half_a_line_is_known_as_such() -> None:
    """What has no line end is no event."""
    decoder = EventDecoder()
    assert list(decoder.feed(encode(GOOD)[:-5])) == []
    assert decoder.incomplete


def test_a_line_without_end_is_given_up() -> None:
    """Memory stays bounded while a child writes one endless line."""
    decoder = EventDecoder()
    for _ in range(MOST_LINE_BYTES // 65536):
        assert list(decoder.feed(b"x" * 65536)) == []
    with pytest.raises(BadResultError, match=str(MOST_LINE_BYTES)):
        list(decoder.feed(b"x"))


def test_events_without_end_are_given_up() -> None:
    """A child that talks for ever is refused at a fixed count."""
    line = encode(Phase(0, "timed", 1.0)) + b"\n"
    decoder = EventDecoder()
    with pytest.raises(BadResultError, match=str(MOST_EVENTS)):
        list(decoder.feed(line * (MOST_EVENTS + 1)))


def test_hello_tells_where_the_child_runs() -> None:
    """The first line carries software and device."""
    line = (
        b'{"event":"hello","version":1,"environment":{"tensorflow":"2.21.0"},'
        b'"device":{"kind":"gpu","uuid":"GPU-a"},"startup_s":3.5}'
    )
    event = decode_event(line)
    assert isinstance(event, Hello)
    assert (event.environment.tensorflow, event.device.uuid) == ("2.21.0", "GPU-a")
