"""What NVML's header declares: functions, structs, versions and constants, read when the library is built."""

import errno
import importlib.metadata
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_FUNCTION = re.compile(r"nvmlReturn_t\s+DECLDIR\s+(nvml\w+)\s*\(([^)]*)\)\s*;")
_PARAMETER = re.compile(r"(const\s+)?([\w ]+?)\s*(\*?)\s*(\w+)$")
_TYPEDEF_BODY = re.compile(r"typedef\s+struct\s*\w*\s*\{")
_TYPE_ALIAS = re.compile(r"typedef\s+(\w+)\s+(nvml\w+)\s*;")
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(.+)$", re.MULTILINE)
_ENUM = re.compile(r"typedef\s+enum\s*\w*\s*\{(.*?)\}", re.DOTALL)
_VERSION_MACRO = re.compile(r"NVML_STRUCT_VERSION\(\w+, \d+\)")
_NUMERIC = re.compile(r"[\w ()<|+\-]*")
_MEMBER = re.compile(r"([\w ]+?)\s*(\*?)\s*(\w+)\s*((?:\[\s*\w+\s*\])*)$")
_LARGEST_SCALAR_ARRAY = 32
_LARGEST_STRUCT_ARRAY = 8


@dataclass(frozen=True)
class Parameter:
    """One parameter of a function, as ``unsigned int *temp``."""

    type: str
    pointer: bool
    constant: bool
    name: str


@dataclass(frozen=True)
class Function:
    """One declaration of the header; every function returns ``nvmlReturn_t``."""

    name: str
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True)
class Header:
    """The parts of ``nvml.h`` that the generator needs.

    ``structs`` maps a type to the paths of its members (``utilization[0].percentage``), ``versions`` maps a
    struct's type to the macro that a caller puts into its ``version`` field.
    """

    functions: tuple[Function, ...]
    structs: Mapping[str, tuple[str, ...]]
    aliases: Mapping[str, str]
    versions: Mapping[str, str]
    constants: tuple[str, ...]
    redirects: tuple[str, ...]


def locate_header() -> Path:
    """Return the path of ``nvml.h`` in the installed nvidia-nvml-dev distribution.

    Raises:
        FileNotFoundError: the distribution is not installed, or holds no such file.
    """
    try:
        files = importlib.metadata.files("nvidia-nvml-dev") or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.name == "nvml.h":
            return Path(str(file.locate()))
    raise FileNotFoundError(errno.ENOENT, "not found; pip install nvidia-nvml-dev brings it", "nvml.h")


def read_header(path: Path) -> Header:
    """Return what the header at ``path`` declares."""
    text = _COMMENT.sub(" ", path.read_text(encoding="utf-8", errors="replace"))
    macros = {name: value.strip() for name, value in _MACRO.findall(text)}
    functions = tuple(_functions(text))
    names = {function.name for function in functions}
    structs = dict(_structs(text))
    sizes = {name: int(value, 0) for name, value in macros.items() if re.fullmatch(r"0x[0-9a-fA-F]+|\d+", value)}
    return Header(
        functions=functions,
        structs={name: tuple(_paths(body, structs, sizes)) for name, body in structs.items()},
        aliases={new: old for old, new in _TYPE_ALIAS.findall(text) if old in structs},
        versions={f"{name}_t": name for name, value in macros.items() if _VERSION_MACRO.match(value)},
        constants=tuple(_constants(text, macros, names)),
        redirects=tuple(name for name in macros if name in names),
    )


def _functions(text: str) -> Iterator[Function]:
    for name, parameters in _FUNCTION.findall(text):
        words = " ".join(parameters.split())
        yield Function(name, () if words == "void" else tuple(_parameter(part) for part in words.split(",")))


def _parameter(text: str) -> Parameter:
    match = _PARAMETER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"parameter {text!r}: not understood; expected TYPE [*] NAME")
    return Parameter(type=match[2], pointer=bool(match[3]), constant=bool(match[1]), name=match[4])


def _structs(text: str) -> Iterator[tuple[str, str]]:
    """Yield every typedef of a struct with its body, once for each name it gives."""
    for match in _TYPEDEF_BODY.finditer(text):
        end = _closing_brace(text, match.end())
        names = text[end + 1 : text.index(";", end)]
        for name in names.split(","):
            yield name.strip(), text[match.end() : end]


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise ValueError(f"{text[start : start + 40]!r}: brace is never closed")


def _members(body: str) -> Iterator[tuple[str, str]]:
    """Yield each member's declaration, and the body of the struct or union written inside it ('' for none)."""
    position = 0
    while (end := body.find(";", position)) >= 0:
        brace = body.find("{", position, end)
        if brace < 0:
            yield body[position:end].strip(), ""
        else:
            close = _closing_brace(body, brace + 1)
            end = body.index(";", close)
            yield f"inline {body[close + 1 : end].strip()}", body[brace + 1 : close]
        position = end + 1


def _paths(body: str, structs: Mapping[str, str], sizes: Mapping[str, int]) -> Iterator[str]:
    """Yield the path of every number and text in a struct's body, nested ones included."""
    for declaration, inline in _members(body):
        if declaration.strip() == "inline":  # an anonymous union: its members are the struct's own
            yield from _paths(inline, structs, sizes)
            continue
        match = _MEMBER.fullmatch(" ".join(declaration.split()))
        if match is None or match[2]:
            continue
        kind, name = match[1], match[3]
        nested = inline or structs.get(kind, "")
        counts = [sizes.get(size, 0) if not size.isdigit() else int(size) for size in re.findall(r"\w+", match[4])]
        if not counts or "char" in kind:
            elements = [name]
        else:
            largest = _LARGEST_STRUCT_ARRAY if nested else _LARGEST_SCALAR_ARRAY
            elements = [f"{name}[{index}]" for index in range(min(counts[0], largest))] if len(counts) == 1 else []
        inner = tuple(_paths(nested, structs, sizes)) if nested else ()
        for element in elements:
            if nested:
                yield from (f"{element}.{path}" for path in inner)
            else:
                yield element


def _constants(text: str, macros: Mapping[str, str], functions: set[str]) -> Iterator[str]:
    """Yield the names of all enumerators, and of all macros that are whole numbers."""
    for body in _ENUM.findall(text):
        yield from re.findall(r"^\s*(NVML_\w+)", body, re.MULTILINE)
    for name, value in macros.items():
        is_number = value and _NUMERIC.fullmatch(value) and not value.endswith("_t") and "nvmlCPER" not in value
        if name.startswith(("NVML_", "nvml")) and is_number and name not in functions:
            words = re.findall(r"[A-Za-z_]\w*", re.sub(r"\b(0x[0-9a-fA-F]+|\d+)[uUlL]*\b", "", value))
            if all(word in macros or word.startswith("NVML_") for word in words):
                yield name
