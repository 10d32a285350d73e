"""Structs into stored rows and back; a row of unknown form costs only itself."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
import structlog

from agent.model.plain import plain

_log = structlog.get_logger("state")
_T = TypeVar("_T")


_ENCODER = msgspec.json.Encoder(enc_hook=plain)


def encoded(value: msgspec.Struct) -> bytes:
    """Return a struct as JSON; read-only mappings are written as objects."""
    return _ENCODER.encode(value)


def decoded(kind: type[_T], rows: Iterable[tuple[bytes, ...]]) -> Iterator[tuple[_T, tuple[bytes, ...]]]:
    """Yield each row's first column as ``kind`` and the row itself; an unreadable one is left out, with a warning."""
    decoder = msgspec.json.Decoder(kind)
    for row in rows:
        value = _decode(decoder, row[0])
        if value is not None:
            yield value, row


def _decode(decoder: msgspec.json.Decoder[_T], data: bytes) -> _T | None:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, TypeError) as error:
        _log.warning("state_row_unreadable", kind=str(decoder.type), error=str(error))
        return None
