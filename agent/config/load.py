"""From a file and the environment to frozen settings, or to every fault at once."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, cast

import msgspec

from agent.config.schema import ENVIRONMENT_PREFIX, Setting, nearest, sections, settings_table, shown
from agent.config.settings import Settings
from agent.config.source import Document, read_document
from agent.errors import ConfigError
from agent.model.text import clean_label

CONFIG_VARIABLE: Final = "HEATSOAK_CONFIG"
DEFAULT_PATH: Final = Path("/etc/heatsoak/heatsoak.toml")
_OTHER_VARIABLES: Final = frozenset({CONFIG_VARIABLE, "HEATSOAK_STATE_DIR"})
_KUBERNETES_SERVICE = re.compile(r"HEATSOAK_(SERVICE_(HOST|PORT(_.+)?)|PORT(_\d+_.+)?)")
"""What Kubernetes gives every pod beside a service named heatsoak."""


def load(path: str | None, environ: Mapping[str, str], default: Path = DEFAULT_PATH) -> Settings:
    """Return the settings of a file, overridden by the environment.

    The file is ``path``, else the one HEATSOAK_CONFIG names, else ``default`` if there is one.

    Raises:
        ConfigError: there are faults; it holds all of them, one line each.
    """
    faults: list[str] = []
    values: dict[str, object] = {}
    try:
        document = _document(path or environ.get(CONFIG_VARIABLE), default)
    except ConfigError as error:
        faults += error.faults
    else:
        if document:
            values.update(_from_table(document, document.content, "", faults))
    values.update(_from_environment(environ, faults))
    if faults:
        raise ConfigError(faults)
    return cast("Settings", _build(Settings, "", values))


def unknown_variables(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return a line for each HEATSOAK_ variable that is no setting, naming the one probably meant."""
    known = {setting.variable for setting in settings_table().values()} | _OTHER_VARIABLES
    return tuple(
        f"{clean_label(name)} is no setting; {nearest(name, sorted(known))}"
        for name in sorted(environ)
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known and not _KUBERNETES_SERVICE.fullmatch(name)
    )


def changes_needing_restart(old: Settings, new: Settings) -> tuple[str, ...]:
    """Return the dotted names of settings that differ and that a reload cannot change."""
    return tuple(
        setting.dotted
        for setting in settings_table().values()
        if setting.needs_restart and setting.value_in(old) != setting.value_in(new)
    )


def until_restart(running: Settings, wanted: Settings) -> Settings:
    """Return ``wanted`` with the settings that a reload cannot change as they are in ``running``.

    So that no part of the agent follows a change that others cannot.
    """
    values = {
        setting.dotted: setting.value_in(running if setting.needs_restart else wanted)
        for setting in settings_table().values()
    }
    return cast("Settings", _build(Settings, "", values))


def _document(named: str | None, default: Path) -> Document | None:
    path = Path(named) if named else default
    try:
        return read_document(path)
    except FileNotFoundError as error:
        if not named:
            return None
        raise ConfigError([f"{clean_label(named, 500)}: no such file; must be a readable TOML file"]) from error


def _from_table(
    document: Document, table: Mapping[str, object], section: str, faults: list[str]
) -> Iterator[tuple[str, object]]:
    """Yield dotted name and value of each right setting in ``table``; add a line to ``faults`` for the rest."""
    for key, value in table.items():
        dotted = f"{section}.{key}".removeprefix(".")
        where = f"{document.place(dotted)}: {clean_label(dotted)}"
        if setting := settings_table().get(dotted):
            found = [fault for part in _entries(setting, value) for fault in _faults_in(document, setting, *part)]
            if not found:
                yield dotted, setting.convert(value)
            faults += found
        elif dotted not in sections():
            faults.append(f"{where}: unknown, with the value {shown(value)}; {_suggestion(section, key)}")
        elif isinstance(value, dict):
            yield from _from_table(document, value, dotted, faults)
        else:
            faults.append(f"{where}: must be a table, [{dotted}], not {shown(value)}")


def _entries(setting: Setting, value: object) -> Iterator[tuple[str, object]]:
    """Yield the parts of a value that stand on lines of their own, each under its dotted name."""
    if setting.container is dict and isinstance(value, dict):
        yield from ((f"{setting.dotted}.{name}", {name: one}) for name, one in value.items())
    else:
        yield setting.dotted, value


def _faults_in(document: Document, setting: Setting, dotted: str, value: object) -> list[str]:
    try:
        setting.convert(value)
    except ConfigError as error:
        return [f"{document.place(dotted)}: {clean_label(dotted)}: {fault}" for fault in error.faults]
    return []


def _from_environment(environ: Mapping[str, str], faults: list[str]) -> Iterator[tuple[str, object]]:
    for setting in settings_table().values():
        text = environ.get(setting.variable)
        if text is None:
            continue
        try:
            yield setting.dotted, setting.convert(_split(setting, text), strict=False)
        except ConfigError as error:
            faults += [f"{setting.variable}: {setting.dotted}: {fault}" for fault in error.faults]


def _split(setting: Setting, text: str) -> object:
    """Return ``text`` cut at commas where the setting holds several values."""
    items = [item.strip() for item in text.split(",") if item.strip()]
    if setting.container is tuple:
        return items
    if setting.container is dict:
        return {name.strip(): value.strip() for name, _, value in (item.partition("=") for item in items)}
    return text


def _suggestion(section: str, key: str) -> str:
    """Return what was probably meant by an unknown key: a sibling, else the same key elsewhere."""
    siblings = [field.name for field in msgspec.structs.fields(sections()[section])]
    elsewhere = [setting.dotted for setting in settings_table().values() if setting.key == key]
    if elsewhere and key not in siblings:
        return f"did you mean {' or '.join(elsewhere)}?"
    return nearest(key, siblings)


def _build(struct: type[msgspec.Struct], section: str, values: Mapping[str, object]) -> msgspec.Struct:
    arguments: dict[str, object] = {}
    for field in msgspec.structs.fields(struct):
        dotted = f"{section}.{field.name}".removeprefix(".")
        if dotted in sections():
            arguments[field.name] = _build(sections()[dotted], dotted, values)
        elif dotted in values:
            arguments[field.name] = values[dotted]
    return struct(**arguments)
