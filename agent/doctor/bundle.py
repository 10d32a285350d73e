"""The support archive: what to attach to a question, with nothing in it that names a machine or a person."""

import contextlib
import io
import re
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from agent.errors import EXIT_USAGE, HeatsoakError

_UUID: Final = re.compile(r"GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_SECRET: Final = re.compile(r"(?im)^(.*(?:password|secret|token|key)[^=\n]*=\s*).+$")
_ADDRESS: Final = re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b")
_KEPT_ADDRESSES: Final = ("0.0.0.0", "127.0.0.1")  # noqa: S104 - recognised in text, not listened on


class BundleError(HeatsoakError):
    """The archive cannot be written."""

    exit_code = EXIT_USAGE


def redacted(text: str, names: Iterable[str]) -> str:
    """Return ``text`` without card UUIDs, addresses, values of secrets, and without ``names`` (hosts, serials)."""
    uuids: dict[str, str] = {}
    text = _UUID.sub(lambda match: uuids.setdefault(match[0], f"GPU-masked-{len(uuids)}"), text)
    text = _SECRET.sub(r"\1(left out)", text)
    text = _ADDRESS.sub(lambda match: match[0] if match[0] in _KEPT_ADDRESSES else "(address)", text)
    for name in sorted(filter(None, names), key=len, reverse=True):
        text = text.replace(name, "(name)")
    return text


def refuse_existing(path: Path) -> None:
    """Refuse a file that is there: it may be the only one of what went wrong.

    Raises:
        BundleError: it is there already.
    """
    if path.exists():
        raise BundleError(f"{path}: is there already; name another file")


def write_bundle(path: Path, documents: Mapping[str, str], recording: bytes, names: Iterable[str]) -> None:
    """Write a compressed archive of redacted ``documents`` by name, and a recording that is masked already.

    Raises:
        BundleError: the file is there already, or cannot be written; none is left then.
    """
    refuse_existing(path)
    contents = {name: redacted(text, names).encode("utf-8", "replace") for name, text in documents.items()}
    try:
        with tarfile.open(path, "w:gz") as archive:
            for name, content in {**contents, "cards.jsonl": recording}.items():
                entry = tarfile.TarInfo(f"heatsoak/{name}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise BundleError(f"{path}: cannot be written: {error.strerror}; expected a place for a file") from error
