"""The workloads package as one file that any interpreter from Python 3.8 on can run."""

import hashlib
import importlib.util
import io
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Final

from agent.errors import HeatsoakError, reason_of

_MAIN: Final = "import runpy\n\nrunpy.run_module('workloads', run_name='__main__', alter_sys=True)\n"
_PACKAGE: Final = "workloads"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


class PackageError(HeatsoakError):
    """The workloads package cannot be found or written."""


def installed_workloads() -> Path:
    """Return the folder of the installed ``workloads`` package, without importing it.

    Raises:
        PackageError: There is none beside the agent.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise PackageError(f"the package {_PACKAGE!r} is not installed beside 'agent'; install heatsoak as a whole")
    return Path(next(iter(spec.submodule_search_locations)))


def make_package(source: Path, directory: Path) -> Path:
    """Write the package ``source`` as a zip application into ``directory`` and return its path.

    The name holds a hash of the content; the file appears by a rename, so no child ever sees half of it.

    Raises:
        PackageError: The source cannot be read or the directory cannot be written.
    """
    try:
        content = _archive(source)
        path = directory / f"workloads-{hashlib.sha256(content).hexdigest()[:16]}.pyz"
        if not path.exists() or path.read_bytes() != content:
            directory.mkdir(parents=True, exist_ok=True)
            _write(path, content)
    except OSError as error:
        raise PackageError(f"cannot pack {source} into {directory}: {reason_of(error)}") from error
    return path


def _archive(source: Path) -> bytes:
    files = sorted(path for path in source.rglob("*.py") if "__pycache__" not in path.parts)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _EPOCH), _MAIN)
        for path in files:
            name = str(Path(_PACKAGE) / path.relative_to(source))
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes())
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
