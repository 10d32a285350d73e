"""The wire format of protocol buffers, as far as messages of text and messages need it."""

from collections.abc import Iterator
from typing import Final

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LONGEST_VARINT: Final = 10


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of each field that holds text, bytes or a message; others are passed over.

    Raises:
        ValueError: the message is cut off or no message at all.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if number == 0:
            raise ValueError(f"field number 0 at byte {at}: no protobuf message")
        if kind == _VARINT:
            _, at = _varint(message, at)
            continue
        length, at = _varint(message, at) if kind == _BYTES else (_fixed_length(kind), at)
        end = at + length
        if end > len(message):
            raise ValueError(f"field {number} wants {length} bytes at byte {at} of {len(message)}: cut off")
        if kind == _BYTES:
            yield number, message[at:end]
        at = end


def texts(message: bytes, wanted: int) -> list[str]:
    """Return every text of field ``wanted``; bytes that are not UTF-8 become U+FFFD.

    Raises:
        ValueError: the message is cut off or no message at all.
    """
    return [content.decode("utf-8", "replace") for number, content in fields(message) if number == wanted]


def messages(message: bytes, wanted: int) -> list[bytes]:
    """Return every message of field ``wanted``.

    Raises:
        ValueError: the message is cut off or no message at all.
    """
    return [content for number, content in fields(message) if number == wanted]


def _fixed_length(kind: int) -> int:
    if kind == _FIXED64:
        return 8
    if kind == _FIXED32:
        return 4
    raise ValueError(f"wire type {kind} is none of protobuf's")


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and where it ends."""
    value = 0
    for place in range(_LONGEST_VARINT):
        if at + place >= len(message):
            raise ValueError(f"number at byte {at} is cut off")
        byte = message[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if not byte & 0x80:
            return value, at + place + 1
    raise ValueError(f"number at byte {at} is longer than {_LONGEST_VARINT} bytes")
