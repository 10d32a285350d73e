"""What the child is told: one strict JSON document on standard input."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple, Union

from workloads.untyped import Json

PROTOCOL_VERSION = 1
PROBES = ("matmul", "resnet50", "vgg16", "pipeline", "bandwidth", "fill", "memory")
DTYPES = ("", "bf16", "fp16", "tf32", "fp32", "fp64")
MODES = ("graph", "xla")
DEVICES = ("gpu", "cpu")

Option = Union[str, float, bool]
Check = Callable[[Json, str], Any]
"""Takes a value and its place, returns the value or raises SpecError."""


class SpecError(Exception):
    """The specification is unfit; the message names the field, its value and what would be right."""


@dataclass(frozen=True)
class Request:
    """One measurement to make; 0 and empty text leave the choice to the probe's own rules."""

    probe: str
    dtype: str = ""
    size: int = 0
    """Matrix side, or image side in pixels."""
    batch: int = 0
    mode: str = "graph"
    seconds: float = 0.0
    """Length of the judged window."""
    options: Mapping[str, Option] = field(default_factory=dict)

    def flag(self, name: str) -> bool:
        """Return whether the option ``name`` is true; absent counts as false."""
        return bool(self.options.get(name, False))

    def number(self, name: str, default: float) -> float:
        """Return the option ``name`` as a number, ``default`` where it is absent."""
        return float(self.options.get(name, default))

    def text(self, name: str) -> str:
        """Return the option ``name`` as text, empty where it is absent."""
        return str(self.options.get(name, ""))


@dataclass(frozen=True)
class Spec:
    """All that a child is told."""

    version: int
    device: str
    requests: Tuple[Request, ...]
    gpu_uuid: str = ""
    pci_bus_id: str = ""
    memory_limit_bytes: int = 0
    """Hard limit of TensorFlow's allocator; 0 lets it grow as needed."""
    threads: int = 0
    """Threads of one operation and operations at a time; 0 leaves TensorFlow's default."""
    cache_dir: str = ""
    """Directory of the persistent compilation caches; none are kept where empty."""
    seed: int = 0
    companion_uuids: Tuple[str, ...] = ()
    """Further cards that a step is spread over, beside ``gpu_uuid``."""
    replicas: int = 1
    """Devices that a step is spread over: all cards, or logical devices of the CPU."""
    reserve_all: bool = False
    """Whether TensorFlow takes the whole of each card at once, as it does by default; else it grows as needed."""

    @property
    def wants_keras(self) -> bool:
        """Whether a request is about what Keras does."""
        return any(request.text("method") == "article" for request in self.requests)


def parse(text: str) -> Spec:
    """Return the specification that ``text`` holds.

    Raises:
        SpecError: it is no JSON object, has an unknown or missing key, a wrong type or a value out of range.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except ValueError as error:
        raise SpecError("specification: not JSON: %s" % error) from error
    values = _fields(document, "specification", _SPEC_FIELDS, ("version", "device", "requests"))
    if values["version"] != PROTOCOL_VERSION:
        raise SpecError("specification.version: %r, want %d" % (values["version"], PROTOCOL_VERSION))
    items = values.pop("requests")
    if not items:
        raise SpecError("specification.requests: %r, want at least one request" % (items,))
    requests = tuple(_request(item, "specification.requests[%d]" % index) for index, item in enumerate(items))
    asked = Spec(requests=requests, **values)
    cards = 1 + len(asked.companion_uuids)
    if asked.replicas < 1 or (asked.device == "gpu" and asked.replicas != cards):
        wanted = "%d, one for each card" % cards if asked.device == "gpu" else "at least 1"
        raise SpecError("specification.replicas: %d, want %s" % (asked.replicas, wanted))
    return asked


def parse_descriptor(arguments: Sequence[str]) -> int:
    """Return the result descriptor that the command line names.

    Raises:
        SpecError: it names none.
    """
    if len(arguments) != 1 or not arguments[0].isdigit():
        raise SpecError("arguments %r, want RESULT_FD, the number of an open descriptor" % list(arguments))
    return int(arguments[0])


def _request(document: Json, where: str) -> Request:
    values = _fields(document, where, _REQUEST_FIELDS, ("probe",))
    for name, value in values.get("options", {}).items():
        if not isinstance(value, (str, int, float)):
            raise SpecError("%s.options.%s: %r, want text, a number or a boolean" % (where, name, value))
    return Request(**values)


def _fields(document: Json, where: str, known: Mapping[str, Check], required: Tuple[str, ...]) -> Dict[str, Json]:
    if not isinstance(document, dict):
        raise SpecError("%s: %r, want an object" % (where, document))
    for name in document:
        if name not in known:
            raise SpecError("%s.%s: unknown, want one of %s" % (where, name, ", ".join(sorted(known))))
    for name in required:
        if name not in document:
            raise SpecError("%s.%s: missing" % (where, name))
    return {name: known[name](value, "%s.%s" % (where, name)) for name, value in document.items()}


def _text(value: Json, where: str) -> str:
    if not isinstance(value, str):
        raise SpecError("%s: %r, want text" % (where, value))
    return value


def _count(value: Json, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise SpecError("%s: %r, want a whole number of at least 0" % (where, value))
    return value


def _duration(value: Json, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 3600:
        raise SpecError("%s: %r, want seconds from 0 to 3600" % (where, value))
    return float(value)


def _one_of(allowed: Tuple[str, ...]) -> Callable[[Any, str], str]:
    def check(value: Json, where: str) -> str:
        if value not in allowed:
            raise SpecError("%s: %r, want one of %s" % (where, value, ", ".join(repr(item) for item in allowed)))
        return str(value)

    return check


def _list(value: Json, where: str) -> List[Json]:
    if not isinstance(value, list):
        raise SpecError("%s: %r, want a list" % (where, value))
    return value


def _flag(value: Json, where: str) -> bool:
    if not isinstance(value, bool):
        raise SpecError("%s: %r, want true or false" % (where, value))
    return value


def _texts(value: Json, where: str) -> Tuple[str, ...]:
    return tuple(_text(item, "%s[%d]" % (where, index)) for index, item in enumerate(_list(value, where)))


def _object(value: Json, where: str) -> Dict[str, Json]:
    if not isinstance(value, dict):
        raise SpecError("%s: %r, want an object" % (where, value))
    return value


def _refuse_constant(name: str) -> float:
    raise ValueError("%s is not a number of JSON" % name)


_REQUEST_FIELDS: Mapping[str, Check] = {
    "probe": _one_of(PROBES),
    "dtype": _one_of(DTYPES),
    "size": _count,
    "batch": _count,
    "mode": _one_of(MODES),
    "seconds": _duration,
    "options": _object,
}
_SPEC_FIELDS: Mapping[str, Check] = {
    "version": _count,
    "device": _one_of(DEVICES),
    "requests": _list,
    "gpu_uuid": _text,
    "pci_bus_id": _text,
    "memory_limit_bytes": _count,
    "threads": _count,
    "cache_dir": _text,
    "seed": _count,
    "companion_uuids": _texts,
    "replicas": _count,
    "reserve_all": _flag,
}
