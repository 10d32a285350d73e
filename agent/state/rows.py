"""Stored rows back into structs; one of unknown form costs only itself."""

from collections.abc import Iterable, Iterator
from typing import TypeVar

import msgspec
import structlog

_log = structlog.get_logger("state")
_T = TypeVar("_T")


def decoded(kind: type[_T], rows: Iterable[tuple[bytes, ...]]) -> Iterator[tuple[_T, tuple[bytes, ...]]]:
    """Yield each row's first column as ``kind`` and the row itself; one that cannot be read is left out, with a warning."""
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
