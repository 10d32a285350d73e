"""The C made from the header: one exported function for each of NVML's, and the tables the scenario reader needs."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.fakenvml.header import Function, Header, Parameter

_DEVICE = "nvmlDevice_t"
_HANDLES = {"nvmlUnit_t", "nvmlGpuInstance_t", "nvmlComputeInstance_t", "nvmlEventSet_t", "nvmlGpmSample_t"}
_IN_FIELDS = {
    "nvmlTemperature_v1_t": ("sensorType",),
    "nvmlFanSpeedInfo_v1_t": ("fan",),
    "nvmlClockOffset_v1_t": ("type", "pstate"),
    "nvmlCoolerInfo_v1_t": ("index",),
}
"""Members that a caller fills in: they are arguments of a line."""
_PLAIN_VERSIONS = {"nvmlGpmSupport_t": "NVML_GPM_SUPPORT_VERSION"}
_CARD_WITHOUT_HANDLE = re.compile(r"nvmlDeviceGetHandleBy\w+|nvmlGpmMetricsGet")
"""Functions about a card that do not take its handle."""
_MOST_FIELDS = 400
_UNSAID_LENGTH = 64
"""Room of a text whose length is not passed: that of a firmware's version."""
_WORDS = (
    ("field", 2, "TAKES_VALUES", 1),
    ("gpm", 1, "TAKES_VALUES", 1),
    ("pci", 0, "TAKES_LIST", 0),
    ("samples", 1, "TAKES_VALUES", 1),
)
"""What a line may name besides functions: name, arguments, shape, values."""


@dataclass(frozen=True)
class _Shape:
    """How a function is served: C expressions of its arguments and outputs, and what a line may answer."""

    args: tuple[str, ...]
    outs: tuple[str, ...]
    kind: str
    values: int = 0
    layouts: tuple[str, ...] = ()


def generate(header: Header, written: Iterable[str]) -> str:
    """Return generated.c: a body for each function not in ``written``, and the tables of all of them."""
    by_hand = set(written)
    shapes = {function.name: _shape(header, function) for function in header.functions}
    used = sorted({layout for shape in shapes.values() for layout in shape.layouts})
    parts = [
        '#include "fake.h"',
        *(_layout(header, name) for name in used),
        *(_layout_list(header, function.name, shapes[function.name]) for function in header.functions),
        _function_table(header.functions, shapes),
        _constant_table(header.constants),
        *(_body(function, shapes[function.name]) for function in header.functions if function.name not in by_hand),
    ]
    return "\n".join(part for part in parts if part) + "\n"


def redirects(header: Header) -> str:
    """Return redirects.h: the lines that keep the header from renaming functions that are written by hand."""
    return "\n".join(f"#undef {name}" for name in header.redirects) + "\n"


def hand_written(source: str) -> Iterator[str]:
    """Yield the names of the NVML functions that a C source defines."""
    yield from re.findall(r"^nvmlReturn_t (nvml\w+)\(", source, re.MULTILINE)
    for kind in re.findall(r"^LISTS\((\w+),", source, re.MULTILINE):
        yield from (f"nvmlDeviceGet{kind}RunningProcesses{version}" for version in ("", "_v2", "_v3"))


# ---- shapes ----------------------------------------------------------------------------------------


def _shape(header: Header, function: Function) -> _Shape:
    """Return how ``function`` is served; unknown where its outputs are of no form that is understood."""
    args = tuple(_argument(parameter) for parameter in _inputs(function))
    outs = _outputs(header, function)
    if outs is None:
        return _Shape(args, (), "TAKES_NOTHING")
    if any(out.startswith("STRUCT") for out in outs):
        return _struct_shape(header, function, args, outs)
    if any("LIST" in out for out in outs):
        return _Shape(args, outs, "TAKES_LIST") if len(outs) == 1 else _Shape(args, (), "TAKES_NOTHING")
    return _Shape(args, outs, "TAKES_VALUES" if outs else "TAKES_NOTHING", len(outs))


def _struct_shape(header: Header, function: Function, args: tuple[str, ...], outs: tuple[str, ...]) -> _Shape:
    if len(outs) > 1:
        return _Shape(args, (), "TAKES_NOTHING")
    parameter = next(p for p in function.parameters if p.pointer and not p.constant)
    kind = header.aliases.get(parameter.type, parameter.type)
    layouts = tuple(name for name in _family(header, kind) if 0 < len(header.structs[name]) <= _MOST_FIELDS)
    if not layouts:
        return _Shape(args, (), "TAKES_NOTHING")
    members = tuple(f"IN_FIELD({parameter.name}, {member})" for member in _IN_FIELDS.get(kind, ()))
    return _Shape(args + members, outs, "TAKES_FIELDS", layouts=layouts)


def _family(header: Header, kind: str) -> tuple[str, ...]:
    """Return all versions of a struct that carry their version, or the struct alone."""
    if kind not in header.versions:
        return (kind,)
    base = re.sub(r"_v\d+_t$", "", kind)
    return tuple(name for name in header.versions if re.fullmatch(rf"{base}_v\d+_t", name) and name in header.structs)


def _inputs(function: Function) -> Iterator[Parameter]:
    """Yield what a caller passes by value, without the card and without lengths of buffers."""
    previous: Parameter | None = None
    for index, parameter in enumerate(function.parameters):
        is_card = index == 0 and parameter.type == _DEVICE
        is_length = previous is not None and previous.pointer and _is_length(parameter)
        following = function.parameters[index + 1] if index + 1 < len(function.parameters) else None
        is_size = parameter.name.endswith("SetSize") or (parameter.name == "size" and following is None)
        if not parameter.pointer and not is_card and not is_length and not is_size:
            yield parameter
        previous = parameter


def _is_length(parameter: Parameter) -> bool:
    return not parameter.pointer and parameter.name in ("length", "size")


def _argument(parameter: Parameter) -> str:
    if parameter.type == _DEVICE:
        return f"(long long)(device_of({parameter.name}) ? device_of({parameter.name})->card : -1)"
    if parameter.type in _HANDLES:
        return f"(long long)(intptr_t){parameter.name}"
    return f"(long long){parameter.name}"


def _outputs(header: Header, function: Function) -> tuple[str, ...] | None:
    """Return the initialisers of the outputs, or None where a form is not understood."""
    outs: list[str] = []
    padded = [None, *function.parameters, None]
    for before, parameter, after in zip(padded[:-2], function.parameters, padded[2:], strict=True):
        if not parameter.pointer:
            continue
        if parameter.constant:
            return None
        if outs and outs[-1].startswith(("LIST", "SIZED_TEXT")):
            continue  # the elements or the length of what was just taken, or a second array beside the first
        out = _output(header, before, parameter, after)
        if not out:
            return None
        outs.append(out)
    return tuple(outs)


def _output(header: Header, before: Parameter | None, parameter: Parameter, after: Parameter | None) -> str:
    """Return one output's initialiser, empty where its form is not understood."""
    name = parameter.name
    if parameter.type == "char":
        return _text(name, after)
    if _is_struct(header, parameter):
        return f"STRUCT({name})"
    if _is_handle(parameter):
        return ""
    if _counts(parameter) and after and after.pointer:
        return "" if _is_handle(after) or _is_struct(header, after) else f"LIST({after.name}, {name})"
    if before and before.name.endswith("SetSize"):
        return f"FIXED_LIST({name}, {before.name})"
    if after and _is_length(after):
        return f"FIXED_LIST({name}, {after.name} / sizeof *{name})"
    return f"NUMBER({name})"


def _text(name: str, after: Parameter | None) -> str:
    if after and after.pointer and after.type == "unsigned int":
        return f"SIZED_TEXT({name}, {after.name})"
    length = after.name if after and _is_length(after) else str(_UNSAID_LENGTH)
    return f"TEXT({name}, {length})"


def _is_struct(header: Header, parameter: Parameter) -> bool:
    return header.aliases.get(parameter.type, parameter.type) in header.structs


def _is_handle(parameter: Parameter) -> bool:
    return parameter.type in _HANDLES or parameter.type == _DEVICE


def _counts(parameter: Parameter) -> bool:
    """Return whether a number tells the length of the array after it; a count of sessions is a plain number."""
    name = parameter.name.lower()
    return parameter.type == "unsigned int" and name.endswith("count") and name != "sessioncount"


# ---- C text ----------------------------------------------------------------------------------------


def _layout(header: Header, name: str) -> str:
    rows = "".join(f"    FIELD({name}, {path}),\n" for path in header.structs[name] if path != "version")
    return f"static const struct field fields_of_{name}[] = {{\n{rows}}};"


def _layout_list(header: Header, function: str, shape: _Shape) -> str:
    if not shape.layouts:
        return ""
    rows = "".join(
        f'    {{"{name}", {header.versions.get(name, _PLAIN_VERSIONS.get(name, "0"))}, fields_of_{name}, '
        f"sizeof fields_of_{name} / sizeof *fields_of_{name}}},\n"
        for name in shape.layouts
    )
    return f"static const struct layout layouts_of_{function}[] = {{\n{rows}}};"


def _function_table(functions: tuple[Function, ...], shapes: dict[str, _Shape]) -> str:
    rows = {name: f'    {{"{name}", true, {args}, {kind}, {values}, NULL, 0}},' for name, args, kind, values in _WORDS}
    for function in functions:
        shape = shapes[function.name]
        on_card = bool(function.parameters) and function.parameters[0].type == _DEVICE
        no_handle = _CARD_WITHOUT_HANDLE.fullmatch(function.name) is not None
        layouts = f"layouts_of_{function.name}" if shape.layouts else "NULL"
        rows[function.name] = (
            f'    {{"{function.name}", {"true" if on_card or no_handle else "false"}, '
            f"{0 if no_handle else len(shape.args)}, {shape.kind}, {shape.values}, {layouts}, {len(shape.layouts)}}},"
        )
    table = "\n".join(rows[name] for name in sorted(rows))
    return f"const struct function functions[] = {{\n{table}\n}};\nconst size_t n_functions = {len(rows)};"


def _constant_table(names: tuple[str, ...]) -> str:
    table = "\n".join(f'    {{"{name}", (long long)({name})}},' for name in sorted(set(names)))
    return f"const struct constant constants[] = {{\n{table}\n}};\nconst size_t n_constants = {len(set(names))};"


def _body(function: Function, shape: _Shape) -> str:
    parameters = ", ".join(
        f"{'const ' if p.constant else ''}{p.type} {'*' if p.pointer else ''}{p.name}" for p in function.parameters
    )
    on_card = bool(function.parameters) and function.parameters[0].type == _DEVICE
    device = function.parameters[0].name if on_card else "NULL"
    args = f"    const long long args[] = {{{', '.join(shape.args)}}};\n" if shape.args else ""
    outs = f"    const struct out outs[] = {{{', '.join(shape.outs)}}};\n" if shape.outs else ""
    call = (
        f'serve("{function.name}", {device}, {len(shape.args)}, {"args" if args else "NULL"}, '
        f"{len(shape.outs)}, {'outs' if outs else 'NULL'})"
    )
    return f"nvmlReturn_t {function.name}({parameters or 'void'})\n{{\n{args}{outs}    return {call};\n}}\n"
