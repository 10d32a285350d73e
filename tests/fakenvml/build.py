"""Builds the fake libnvidia-ml.so.1 from the installed header: ``python -m tests.fakenvml.build [DIR]``."""

import errno
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.fakenvml.generate import generate, hand_written, redirects
from tests.fakenvml.header import locate_header, read_header

LIBRARY = "libnvidia-ml.so.1"
DEFAULT_FOLDER = Path(__file__).parents[2] / ".build" / "fakenvml"
_HERE = Path(__file__).parent
_WARNINGS = ("-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-address", "-Wno-missing-field-initializers", "-Werror")


def build(out_dir: Path = DEFAULT_FOLDER) -> Path:
    """Return the folder below ``out_dir`` that holds the library, building it unless its sources are unchanged.

    Safe to call from several processes at once: one builds, the others wait for it.

    Raises:
        FileNotFoundError: no header is installed, or no gcc.
        subprocess.CalledProcessError: gcc refuses the source; its words are on standard error.
    """
    header = locate_header()
    folder = out_dir / _digest(header)
    out_dir.mkdir(parents=True, exist_ok=True)
    with (out_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / LIBRARY).exists():
            _compile(header, folder)
    return folder


def _sources() -> list[Path]:
    return sorted((_HERE / "library").glob("*.[ch]"))


def _digest(header: Path) -> str:
    digest = hashlib.sha256()
    for path in [header, *_sources(), _HERE / "header.py", _HERE / "generate.py", Path(__file__)]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(header_path: Path, folder: Path) -> None:
    gcc = shutil.which("gcc")
    if gcc is None:
        raise FileNotFoundError(errno.ENOENT, "not found on PATH; install it to build the fake NVML", "gcc")
    header = read_header(header_path)
    sources = [path for path in _sources() if path.suffix == ".c"]
    names = [name for path in sources for name in hand_written(path.read_text(encoding="utf-8"))]
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        work = Path(scratch)
        (work / "redirects.h").write_text(redirects(header), encoding="utf-8")
        (work / "generated.c").write_text(generate(header, names), encoding="utf-8")
        made = work / LIBRARY
        command: Sequence[str | os.PathLike[str]] = [
            gcc, "-std=gnu11", "-O2", "-g", "-fPIC", "-shared", *_WARNINGS,
            f"-Wl,-soname,{LIBRARY}", f"-I{header_path.parent}", f"-I{_HERE / 'library'}", f"-I{work}",
            "-o", made, *sources, work / "generated.c", "-lm", "-lpthread",
        ]  # fmt: skip
        subprocess.run(command, check=True, timeout=120)
        folder.mkdir(exist_ok=True)
        made.replace(folder / LIBRARY)


def main() -> None:
    """Build the library below the folder named, and print where it lies; one line where a part is missing."""
    try:
        print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_FOLDER))
    except FileNotFoundError as error:
        raise SystemExit(f"fakenvml: {error.filename}: {error.strerror}") from error


if __name__ == "__main__":
    main()
