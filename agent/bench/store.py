"""Result files: written whole or not at all, read strictly."""

import contextlib
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from agent.bench.model import SCHEMA_VERSION, BenchResult
from agent.bench.points import NETWORKS
from agent.errors import ConfigError
from agent.model.plain import plain
from agent.model.probe import Attribution, ProbeResult
from agent.model.text import clean_label

_LEAST: Final = 1e-12
_MOST: Final = 1e24
_MOST_COUNTED: Final = 1e6
_LEAST_WATTS: Final = 1e-3
_LONGEST_TEXT: Final = 1000
_TRAINING_SHAPE: Final = re.compile(r"[1-9]\d{0,8}(x[1-9]\d{0,8}){3}", re.ASCII)


def save(result: BenchResult, path: Path) -> None:
    """Write ``result``, replacing what is at ``path`` in one step.

    Raises:
        OSError: It cannot be written.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(result, enc_hook=plain), indent=1) + b"\n")
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def held(path: Path) -> Iterator[None]:
    """Keep other benchmarks from writing ``path`` while the body runs; the kernel lets go of it however we end.

    Raises:
        ConfigError: Another benchmark writes it, or nothing can be written there.
    """
    shown, lock = clean_label(str(path), 500), path.with_name(f".{path.name}.lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        why = error.strerror if path.parent.is_dir() else "there is no such directory"
        raise ConfigError([f"{shown}: cannot be written: {why}; name another file with -o"]) from error
    try:
        if not _locked(descriptor, lock):
            raise ConfigError([f"{shown}: another benchmark writes it; wait for its end, or name another file with -o"])
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _locked(descriptor: int, lock: Path) -> bool:
    """Return whether the lock is ours; where a file system knows no locks, it is."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    # Who held it before us may have removed the file that we opened; another process may hold its successor.
    return lock.exists() and os.path.samestat(os.fstat(descriptor), lock.stat())


def load(path: Path) -> BenchResult:
    """Return the result that a file holds, its texts made printable: it may come from anybody.

    Raises:
        ConfigError: It cannot be read, is no result file, or comes from a newer heatsoak.
    """
    shown = clean_label(str(path), 500)
    try:
        data = path.read_bytes()
        version = msgspec.json.decode(data, type=_Versioned).schema_version
        if version > SCHEMA_VERSION:
            raise ConfigError([f"{shown}: result of schema {version}; this heatsoak reads up to {SCHEMA_VERSION}"])
        result = msgspec.convert(_printable(msgspec.json.decode(data)), type=BenchResult)
    except OSError as error:
        raise ConfigError([f"{shown}: {error.strerror}; give a file that heatsoak bench wrote"]) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(
            [f"{shown}: {clean_label(str(error), 300)}; give a file that heatsoak bench wrote"]
        ) from error
    fault = next(_faults(result), None)
    if fault is not None:
        raise ConfigError([f"{shown}: {fault}; give a file that heatsoak bench wrote"])
    return result


def _printable(value: object) -> object:
    if isinstance(value, str):
        return clean_label(value, _LONGEST_TEXT)
    if isinstance(value, dict):
        return {_printable(name): _printable(held) for name, held in value.items()}
    return [_printable(held) for held in value] if isinstance(value, list) else value


def _faults(result: BenchResult) -> Iterator[str]:
    """Yield what no benchmark writes and no figure could be computed from."""
    for step in result.steps:
        for record in step.records:
            answer = record.result
            where = f"step {clean_label(step.name)!r}, {answer.probe}"
            if answer.value is None:
                continue
            if answer.probe in NETWORKS and not _TRAINING_SHAPE.fullmatch(answer.shape):
                yield f"{where}: shape is {clean_label(answer.shape)!r}, not as 256x224x224x3"
            for name, number, least, most in _bounded(answer, answer.value, record.attribution):
                if not least <= number <= most:
                    yield f"{where}: {name} is {number:g}, not {least:g} to {most:g}"


def _bounded(answer: ProbeResult, value: float, seen: Attribution | None) -> Iterator[tuple[str, float, float, float]]:
    """Yield what is computed with: name, number, the least and the most that it may be."""
    yield "value", value, _LEAST, _MOST
    if seen is not None and seen.power_mean_watts:
        yield "power_mean_watts", seen.power_mean_watts, _LEAST_WATTS, _MOST_COUNTED
    if answer.timing is not None:
        yield "median_s", answer.timing.median_s, _LEAST, _MOST
    for step_s in answer.series.get("step_s", ()):
        yield "step_s", step_s, _LEAST, _MOST
    for name in ("replicas", "accumulate"):
        yield name, answer.figures.get(name, 1.0), 1.0, _MOST_COUNTED
    yield "card_images_per_second", answer.figures.get("card_images_per_second", 1.0), _LEAST, _MOST


class _Versioned(msgspec.Struct, tag_field="kind", tag="heatsoak-bench"):
    """What must be known of a file before the rest of it is read."""

    schema_version: int
