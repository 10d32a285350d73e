"""Settings as TOML: the ones in use, and the commented sample file."""

import ast
import inspect
import textwrap
from collections.abc import Iterator

from agent.config import settings as settings_module
from agent.config.schema import sections, settings_table
from agent.config.settings import Settings

_WIDTH = 100
_INTRODUCTION = """\
Settings of heatsoak, each with its default. Remove the `#` before a key to change it.
Every setting can also be given in the environment: `web.listen` as HEATSOAK_WEB_LISTEN,
lists separated by commas."""


def render(settings: Settings) -> str:
    """Return ``settings`` as TOML, every key written out; loading it gives equal settings."""
    return "\n".join(_tables(settings)).lstrip("\n") + "\n"


def sample() -> str:
    """Return the TOML sample: every setting as a comment with its meaning, valid values and default."""
    return "\n".join(_sample_lines()) + "\n"


def _tables(settings: Settings) -> Iterator[str]:
    table = ""
    for setting in settings_table().values():
        if setting.section != table:
            table = setting.section
            yield f"\n[{table}]"
        yield f"{setting.key} = {_toml(setting.value_in(settings))}"


def _sample_lines() -> Iterator[str]:
    docs = _docstrings()
    yield from _comment(_INTRODUCTION)
    table = ""
    for setting in settings_table().values():
        if setting.section != table:
            table = setting.section
            struct = sections()[table]
            yield ""
            yield from _comment(inspect.getdoc(struct) or "")
            yield f"[{table}]"
        yield ""
        restart = " A change needs a restart." if setting.needs_restart else ""
        meaning = docs[sections()[setting.section].__name__, setting.key]
        yield from _comment(f"{meaning} Must be {setting.expected}.{restart}")
        yield f"# {setting.key} = {_toml(setting.default)}"


def _comment(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield from textwrap.wrap(line, _WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)


def _docstrings() -> dict[tuple[str, str], str]:
    """Map (struct, field) to the text that stands under the field in the settings module."""
    docs: dict[tuple[str, str], str] = {}
    for struct in ast.parse(inspect.getsource(settings_module)).body:
        if not isinstance(struct, ast.ClassDef):
            continue
        for field, below in zip(struct.body, struct.body[1:], strict=False):
            if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                docs[struct.name, field.target.id] = inspect.cleandoc(str(below.value.value)).replace("\n", " ")
    return docs


def _toml(value: object) -> str:
    """Return a setting's value as TOML; texts hold no control characters, the loader sees to that."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items()) + "}"
    return repr(value)
