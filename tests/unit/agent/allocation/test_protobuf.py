"""The wire format, against protobuf's own writer and against noise."""

import contextlib

import pytest
from google.protobuf import struct_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.allocation.protobuf import fields, messages, texts


@given(st.lists(st.text(), max_size=5))
@settings(max_examples=50, deadline=None)
def test_texts_come_back_as_protobuf_wrote_them(words: list[str]) -> None:
    """A list of values is messages of field 1 with a text in field 3 each."""
    wire = struct_pb2.ListValue(values=[struct_pb2.Value(string_value=word) for word in words]).SerializeToString()
    assert [texts(value, 3) for value in messages(wire, 1)] == [[word] for word in words]


@given(st.lists(st.one_of(st.floats(allow_nan=False), st.booleans(), st.text(max_size=20)), max_size=5))
@settings(max_examples=50, deadline=None)
def test_numbers_of_every_kind_are_passed_over(values: list[float | bool | str]) -> None:
    """Fields that hold no text, message or bytes do not hide those that follow."""
    made = struct_pb2.ListValue()
    made.extend(values)
    found = [text for value in messages(made.SerializeToString(), 1) for text in texts(value, 3)]
    assert found == [value for value in values if isinstance(value, str)]


@given(st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_noise_is_a_message_or_a_value_error(noise: bytes) -> None:
    """Whatever bytes come: whole fields out of them, or an error that says where."""
    with contextlib.suppress(ValueError):
        assert sum(len(content) for _, content in fields(noise)) <= len(noise)


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (b"\x0a\x05abc", "field 1 wants 5 bytes at byte 2 of 5"),
        (b"\x0a", "number at byte 1 is cut off"),
        (b"\x80" * 11, "longer than 10 bytes"),
        (b"\x0b", "wire type 3"),
        (b"\x02\x00", "field number 0"),
        (b"\x0d\x00", "field 1 wants 4 bytes"),
    ],
)
def test_what_is_no_message_says_where(message: bytes, told: str) -> None:
    """The error names the place and the fault."""
    with pytest.raises(ValueError, match=told):
        list(fields(message))
