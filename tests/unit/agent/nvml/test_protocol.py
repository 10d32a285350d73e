"""Whatever bytes arrive, the decoder gives a message or our own error."""

import itertools
from contextlib import suppress

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.nvml.protocol import (
    At,
    CardFound,
    Command,
    Done,
    Event,
    Failed,
    Hello,
    LineBuffer,
    ProtocolError,
    Read,
    Ready,
    Start,
    Take,
    Values,
    decode_command,
    decode_event,
    encode,
)

EVENTS: list[Event] = [
    Hello(count=2, driver="580.1", nvml="13"),
    At(1),
    CardFound(card=1, uuid="GPU-1", name="H\u00fcbsch", events=True),
    CardFound(card=1, lost="GPU_IS_LOST"),
    Ready(),
    Values(id=3, card=1, tiers=("fast",), values={"a": 1.5, "b": None}, processes=[(1, "compute", None)], xids=(79,)),
    Done(3),
    Failed("UNKNOWN"),
]
COMMANDS: list[Command] = [Start(skip=(1,), off=("pstate",), library="/x"), Take(2), Read(7, ("fast", "slow"), 1)]


@pytest.mark.parametrize("event", EVENTS)
def test_events_survive_the_pipe(event: Event) -> None:
    """What the child says arrives as it was."""
    assert decode_event(encode(event).rstrip()) == event


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_survive_the_pipe(command: Command) -> None:
    """What the agent says arrives as it was."""
    assert decode_command(encode(command).rstrip()) == command


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"event":"at"}',
        b'{"event":"at","card":-1}',
        b'{"event":"at","card":99999}',
        b'{"event":"values","id":1,"card":0,"tiers":["sometimes"]}',
        b'{"event":"nothing"}',
        b'{"event":"values","id":1,"card":0,"tiers":[],"values":{"a":NaN}}',
        b"[" * 100_000,
    ],
)
def test_other_lines_are_our_error(line: bytes) -> None:
    """The error shows the beginning of the line and what was expected."""
    with pytest.raises(ProtocolError, match="expected one JSON message"):
        decode_event(line)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_message_or_our_error(line: bytes) -> None:
    """No input raises anything else, for both directions."""
    for decode in (decode_event, decode_command):
        with suppress(ProtocolError):
            decode(line)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(EVENTS), st.data())
def test_damaged_messages_are_a_message_or_our_error(event: Event, data: st.DataObject) -> None:
    """Bytes changed, dropped or doubled inside a real message never raise anything else."""
    line = bytearray(encode(event))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(line) - 1))
        line[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
        if not line:
            break
    try:
        decoded = decode_event(bytes(line))
    except ProtocolError:
        return
    assert isinstance(decoded, msgspec.Struct)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=12))
def test_cutting_a_stream_anywhere_gives_the_same_lines(stream: bytes, cuts: list[int]) -> None:
    """Lines do not depend on how the pipe portions them, and nothing but the unfinished rest is held back."""
    places = sorted({0, len(stream), *(cut for cut in cuts if cut <= len(stream))})
    buffer = LineBuffer()
    pieces = [stream[start:end] for start, end in itertools.pairwise(places)]
    lines = [line for piece in pieces for line in buffer.feed(piece)]
    assert lines == stream.split(b"\n")[:-1]


def test_line_without_an_end_is_bounded() -> None:
    """A child that never ends its line cannot fill the agent's memory."""
    buffer = LineBuffer(limit_bytes=100)
    buffer.feed(b"x" * 100)
    with pytest.raises(ProtocolError, match="at most 100"):
        buffer.feed(b"x")
