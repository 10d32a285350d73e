"""A configuration file: bounded reading, strict TOML, and on which line a key stands."""

import re
import stat
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from agent.errors import ConfigError, reason_of
from agent.model.text import clean_label

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SIZE_LIMIT_BYTES: Final = 1 << 20
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_HEADER = re.compile(r"\s*(\[+)([^\]#]+)\]")
_KEY = re.compile(r"""\s*([\w.\- "']{1,200}?)\s*=""")
_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Document(msgspec.Struct, frozen=True):
    """A parsed file; ``lines`` maps dotted names of tables and keys to the line they stand on.

    Tables of an array are numbered from 0, as ``card.0`` with ``card.0.price``.
    """

    path: str
    content: Mapping[str, object]
    lines: Mapping[str, int]

    def place(self, dotted: str) -> str:
        """Return file and line of a key, or of the nearest table around it whose line is known."""
        while dotted and dotted not in self.lines:
            dotted = dotted.rpartition(".")[0]
        return f"{self.path}:{self.lines[dotted]}" if dotted else self.path


def read_document(path: Path) -> Document:
    """Return the TOML document in ``path``.

    Raises:
        ConfigError: the file cannot be read, is no regular file, is too large, not UTF-8 or not TOML.
        FileNotFoundError: there is no such file.
    """
    shown = clean_label(str(path), 500)
    text = _decode(shown, _read(shown, path))
    try:
        content: dict[str, object] = tomllib.loads(text)
    except RecursionError as error:
        raise ConfigError([f"{shown}: nested too deeply; settings need two levels of tables"]) from error
    except ValueError as error:
        raise ConfigError([_syntax_fault(shown, text, str(error))]) from error
    return Document(path=shown, content=content, lines=_find_lines(text))


def _read(shown: str, path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ConfigError([f"{shown}: must be a regular file"])
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT_BYTES + 1)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError([f"{shown}: cannot be read ({reason_of(error)}); must be a readable TOML file"]) from error
    if len(data) > SIZE_LIMIT_BYTES:
        raise ConfigError([f"{shown}: larger than {SIZE_LIMIT_BYTES} bytes; must be a TOML file of settings"])
    return data


def _decode(shown: str, data: bytes) -> str:
    if data.startswith(_BYTE_ORDER_MARK):
        raise ConfigError([f"{shown}:1: starts with a byte order mark; must be plain UTF-8"])
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError([f"{shown}:{line}: byte 0x{data[error.start]:02x} is not UTF-8"]) from error


def _syntax_fault(shown: str, text: str, message: str) -> str:
    place = _PLACE.search(message)
    line, column = place.groups() if place and place[1] else (text.count("\n") + 1, None)
    where = f"{shown}:{line}:{column}" if column else f"{shown}:{line}"
    return f"{where}: not valid TOML: {clean_label(_PLACE.sub('', message), 200)}"


def _find_lines(text: str) -> dict[str, int]:
    """Map dotted names to lines, the first of each; a guess where a value of several lines looks like a key."""
    lines: dict[str, int] = {}
    arrays: Counter[str] = Counter()
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            table = _plain(header[2])
            lines.setdefault(table, number)
            if header[1] == "[[":
                arrays[table] += 1
                table = f"{table}.{arrays[table] - 1}"
                lines[table] = number
        elif key := _KEY.match(line):
            lines.setdefault(f"{table}.{_plain(key[1])}".removeprefix("."), number)
    return lines


def _plain(name: str) -> str:
    return ".".join(part.strip(" \t\"'") for part in name.split("."))
