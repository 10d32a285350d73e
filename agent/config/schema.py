"""The settings as a table: section, key, type, default, what a right value is."""

import difflib
import functools
import math
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType, UnionType
from typing import Annotated, Any, Final, Literal, TypeGuard, Union, get_args, get_origin, get_type_hints

import msgspec

from agent.config import listen
from agent.config.settings import Settings
from agent.errors import ConfigError
from agent.model.quantities import QUANTITIES
from agent.model.text import clean_label
from agent.model.vocabulary import RULE_NAMES

ENVIRONMENT_PREFIX: Final = "HEATSOAK_"
_UNFIT = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_TYPE_WORDS: Final[Mapping[object, str]] = MappingProxyType(
    {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
)


class Setting(msgspec.Struct, frozen=True):
    """One setting; ``expected`` says in words which values are right.

    ``section`` is empty or dotted, as ``verdicts.throttle``.
    """

    section: str
    key: str
    hint: Any
    default: object
    expected: str
    needs_restart: bool

    @property
    def dotted(self) -> str:
        """Return section and key, as ``web.listen``."""
        return f"{self.section}.{self.key}"

    @property
    def variable(self) -> str:
        """Return the name of the environment variable that overrides it."""
        return (ENVIRONMENT_PREFIX + self.dotted.replace(".", "_")).upper()

    @property
    def container(self) -> type | None:
        """Return ``tuple`` for a list, ``dict`` for a table of names, None for a single value."""
        origin: type | None = get_origin(_bare(self.hint))
        return origin if origin in (tuple, dict) else None

    def value_in(self, settings: Settings) -> object:
        """Return its value in ``settings``."""
        value: object = functools.reduce(getattr, self.dotted.split("."), settings)
        return value

    def convert(self, value: object, *, strict: bool = True) -> object:
        """Return ``value`` in the setting's type; where not ``strict``, numbers and booleans may be text.

        Raises:
            ConfigError: the value cannot be used; each line says what it must be and what it is.
        """
        try:
            converted: object = msgspec.convert(value, self.hint, strict=strict)
        except (msgspec.ValidationError, OverflowError) as error:
            raise ConfigError([f"must be {self.expected}, not {shown(value)}"]) from error
        if isinstance(converted, float) and not math.isfinite(converted):
            raise ConfigError([f"must be {self.expected}, finite, not {shown(value)}"])
        if faults := [fault for text in _texts(converted) for fault in self._faults_of_text(text)]:
            raise ConfigError(faults)
        return converted

    def _faults_of_text(self, text: str) -> Iterator[str]:
        """Yield what a type cannot say about ``text``, which stands alone or in a list."""
        expected = _CHECKS[self.dotted](text) if self.dotted in _CHECKS else ""
        if _UNFIT.search(text):
            expected = f"{self.expected} without control characters"
        if expected:
            yield f"must be {expected}, not {shown(text)}"


@functools.cache
def settings_table() -> Mapping[str, Setting]:
    """Return every setting by its dotted name, in the order of ``Settings``."""
    return MappingProxyType({setting.dotted: setting for setting in settings_of(Settings)})


@functools.cache
def sections() -> Mapping[str, type[msgspec.Struct]]:
    """Return every section's struct by its dotted name; the whole of ``Settings`` under the empty name."""
    return MappingProxyType({"": Settings, **dict(_sections_of(Settings, ""))})


def nearest(word: str, known: Iterable[str]) -> str:
    """Return which of ``known`` was probably meant by ``word``, as a question, or else all of them."""
    names = list(known)
    near = difflib.get_close_matches(word[:100], names, n=1)
    return f"did you mean {near[0]}?" if near else f"valid are {', '.join(names)}"


def shown(value: object) -> str:
    """Return ``value`` as one short line for a message."""
    try:
        return clean_label(repr(value), 80)
    except (ValueError, RecursionError):  # a number of too many digits, lists within lists
        return f"a {type(value).__name__} too large to show"


def _fields(struct: type[msgspec.Struct], section: str) -> Iterator[tuple[str, Any, msgspec.structs.FieldInfo]]:
    """Yield the dotted name, type hint and description of each field."""
    hints = get_type_hints(struct, include_extras=True)
    for field in msgspec.structs.fields(struct):
        yield f"{section}.{field.name}".removeprefix("."), hints[field.name], field


def _is_section(hint: object) -> TypeGuard[type[msgspec.Struct]]:
    return isinstance(hint, type) and issubclass(hint, msgspec.Struct)


def _sections_of(struct: type[msgspec.Struct], section: str) -> Iterator[tuple[str, type[msgspec.Struct]]]:
    for dotted, hint, _ in _fields(struct, section):
        if _is_section(hint):
            yield dotted, hint
            yield from _sections_of(hint, dotted)


def settings_of(struct: type[msgspec.Struct], section: str = "") -> Iterator[Setting]:
    """Yield each setting that ``struct``, found in ``section``, holds; a struct within it is a section of its own."""
    for dotted, hint, field in _fields(struct, section):
        if _is_section(hint):
            yield from settings_of(hint, dotted)
        else:
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            restart = any((meta.extra or {}).get("restart") for meta in _metas(hint))
            yield Setting(section, field.name, hint, default, _expected(hint), restart)


def _present(hint: object) -> object:
    """Return what ``hint`` is where it is not None, which no file can say."""
    return get_args(hint)[0] if get_origin(hint) in (Union, UnionType) else hint


def _bare(hint: object) -> object:
    hint = _present(hint)
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _metas(hint: object) -> tuple[msgspec.Meta, ...]:
    return tuple(meta for meta in getattr(_present(hint), "__metadata__", ()) if isinstance(meta, msgspec.Meta))


def _expected(hint: object) -> str:
    """Return in words which values ``hint`` takes, as "a number from 0 to 1"."""
    bare = _bare(hint)
    if get_origin(bare) is Literal:
        return "one of " + ", ".join(get_args(bare))
    if get_origin(bare) is dict:
        return f"a table of names, each {_expected(get_args(bare)[1])}"
    if get_origin(bare) is tuple:
        item = get_args(bare)[0]
        content = "texts" if item is str else _expected(item).removeprefix("one of ")
        return f"a list of {content}" + (", at least one" if any(meta.min_length for meta in _metas(hint)) else "")
    if _is_section(bare):
        return "tables"
    return _TYPE_WORDS[bare] + "".join(_range(meta) for meta in _metas(hint))


def _range(meta: msgspec.Meta) -> str:
    if meta.max_length is not None:
        return f" of {meta.min_length or 0} to {meta.max_length} characters"
    if meta.ge is not None and meta.le is not None:
        return f" from {meta.ge} to {meta.le}"
    if meta.ge is not None:
        return f" of at least {meta.ge}"
    return f" above {meta.gt}" if meta.gt is not None else ""


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple | dict):
        yield from (text for text in value if isinstance(text, str))


def _check_listen(address: str) -> str:
    try:
        listen.parse_listen(address)
    except ConfigError:
        return listen.ACCEPTED
    return ""


def _check_pattern(pattern: str) -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # what a later Python would read differently
            re.compile(pattern)
    except (re.error, RecursionError, OverflowError, Warning) as error:
        return f"a regular expression ({clean_label(str(error))})"
    return ""


def _check_quantity(key: str) -> str:
    known = [row.key for row in QUANTITIES]
    return "" if key in known else f"a quantity of docs/METRICS.md ({nearest(key, known)})"


def _check_rule(name: str) -> str:
    return "" if name in RULE_NAMES else f"names of rules ({nearest(name, RULE_NAMES)})"


_CHECKS: Final[Mapping[str, Callable[[str], str]]] = MappingProxyType(
    {
        "web.listen": _check_listen,
        "nvml.off": _check_quantity,
        "verdicts.rules": _check_rule,
        "host.network_exclude": _check_pattern,
        "host.disk_exclude": _check_pattern,
    }
)
"""By dotted name: returns what a text must be, empty where it is right."""
