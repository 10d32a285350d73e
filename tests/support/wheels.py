"""Packages as files, for parts of the tests that reach no index: made once a checkout, the product's own always."""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.agent import ROOT

FOLDER = ROOT / ".build" / "system" / "wheels"
SYSTEM_PYTHON = "/usr/bin/python3"
_PRODUCT = ("agent", "exporters", "workloads")
_DOWNLOAD_S = 600.0


def wheels(*requirements: str) -> Path:
    """Return a folder with the product as it stands, ``requirements``, and all that they need.

    The wheels are made for the system's own Python.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests in several processes share the folder
        _make_product()
        product = str(next(FOLDER.glob("heatsoak-*.whl")))
        for number, requirement in enumerate((product, *requirements)):
            done = FOLDER / f".complete-{requirement if number else 'product'}"
            if _newer(done):
                continue
            _pip(
                "download", "--dest", str(FOLDER), "--find-links", str(FOLDER),
                "--constraint", str(ROOT / "constraints.txt"),
                "--only-binary", ":all:", "--python-version", _version(), requirement,
            )  # fmt: skip
            done.touch()
    return FOLDER


def _make_product() -> None:
    """Pack the product unless nothing of it has changed since."""
    files = [path for folder in _PRODUCT for path in (ROOT / folder).rglob("*") if "__pycache__" not in path.parts]
    changed = max(path.stat().st_mtime for path in (*files, ROOT / "heatsoak.py", ROOT / "setup.py"))
    old = list(FOLDER.glob("heatsoak-*.whl"))
    if len(old) == 1 and old[0].stat().st_mtime > changed:
        return
    for wheel in old:
        wheel.unlink()
    shutil.rmtree(ROOT / "build", ignore_errors=True)  # setuptools would pack modules that are gone by now
    _pip("wheel", "--no-deps", "--wheel-dir", str(FOLDER), str(ROOT))
    shutil.rmtree(ROOT / "build", ignore_errors=True)


def _newer(done: Path) -> bool:
    """Return whether it was made after the list of requirements last changed."""
    sources = (ROOT / "setup.py", ROOT / "constraints.txt")
    return done.exists() and done.stat().st_mtime > max(source.stat().st_mtime for source in sources)


def _version() -> str:
    code = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    return subprocess.run([SYSTEM_PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


def _pip(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", *arguments],
        check=True, timeout=_DOWNLOAD_S, cwd=ROOT,
    )  # fmt: skip
