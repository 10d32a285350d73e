"""References as a JSON document, to be kept outside the node and brought back.

``{"format": "heatsoak-references", "version": 1, "references": [ … ]}``; each reference has the fields of
``agent.model.reference.Reference``. Reading is strict: one fault and nothing is taken.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Final, Literal

import msgspec

from agent.errors import StateError
from agent.model.reference import Reference

VERSION: Final = 1


class _Strict(Reference, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A reference of whose fields each is known."""


class _Document(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal["heatsoak-references"]
    version: Literal[1]
    references: tuple[_Strict, ...]


def export(references: Sequence[Reference]) -> bytes:
    """Return the document that holds ``references``, ended by a newline."""
    document = {"format": "heatsoak-references", "version": VERSION, "references": references}
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def read(data: bytes, where: str, now_wall_s: float) -> tuple[Reference, ...]:
    """Return a document's references as imported now: from here on they count as an operator's word.

    Raises:
        StateError: the document has another form, or figures that no reference can have; names every fault.
    """
    try:
        document = msgspec.json.decode(data, type=_Document)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise StateError(
            f"{where}: not a document of references ({error}); right is what `reference export` writes"
        ) from error
    read_ones = [Reference(**msgspec.structs.asdict(one)) for one in document.references]
    faults = [fault for number, one in enumerate(read_ones) for fault in _faults(one, f"references[{number}]")]
    if faults:
        raise StateError("\n".join(f"{where}: {fault}" for fault in faults))
    imported = {"origin": "imported", "made_wall_s": now_wall_s, "disputed": False, "degraded_before": False}
    return tuple(msgspec.structs.replace(one, **imported) for one in read_ones)


def _faults(one: Reference, place: str) -> Iterator[str]:
    """Yield what is wrong with a reference's figures."""
    if not one.uuid:
        yield f"{place}.uuid is empty; right would be a card's UUID, as GPU-…"
    if not (math.isfinite(one.median) and one.median > 0):
        yield f"{place}.median is {one.median}; right would be a number above 0"
    if not (math.isfinite(one.mad) and 0 <= one.mad < one.median):
        yield f"{place}.mad is {one.mad}; right would be a number from 0 to the median"
    if one.runs < 1:
        yield f"{place}.runs is {one.runs}; right would be 1 or more"
