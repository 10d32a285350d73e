"""Result files: written whole or not at all, read strictly."""

import os
from pathlib import Path

import msgspec

from agent.bench.model import SCHEMA_VERSION, BenchResult
from agent.errors import ConfigError
from agent.model.plain import plain


def save(result: BenchResult, path: Path) -> None:
    """Write ``result``, replacing what is at ``path`` in one step.

    Raises:
        OSError: It cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(result, enc_hook=plain), indent=1) + b"\n")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


def load(path: Path) -> BenchResult:
    """Return the result that a file holds.

    Raises:
        ConfigError: It cannot be read, is no result file, or comes from a newer heatsoak.
    """
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Versioned).schema_version
        if version > SCHEMA_VERSION:
            raise ConfigError([f"{path}: result of schema {version}; this heatsoak reads up to {SCHEMA_VERSION}"])
        return msgspec.json.decode(data, type=BenchResult)
    except OSError as error:
        raise ConfigError([f"{path}: {error.strerror}; give a file that heatsoak bench wrote"]) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError([f"{path}: {error}; give a file that heatsoak bench wrote"]) from error


class _Versioned(msgspec.Struct, tag_field="kind", tag="heatsoak-bench"):
    """What must be known of a file before the rest of it is read."""

    schema_version: int
