"""The workloads as one file: whole or not there, the same content under the same name."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.probes.package import PackageError, installed_workloads, make_package


def source(directory: Path, text: str = "print('answer', 42)\n") -> Path:
    """Make a package to pack."""
    package = directory / "source"
    (package / "inner" / "__pycache__").mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text("from workloads.inner import part\n" + text)
    (package / "inner" / "__init__.py").write_text("")
    (package / "inner" / "part.py").write_text("")
    (package / "inner" / "__pycache__" / "part.py").write_text("never packed")
    return package


def test_package_runs_isolated(tmp_path: Path) -> None:
    """The packed package finds its own modules under ``-I``."""
    path = make_package(source(tmp_path), tmp_path / "state")
    done = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, check=True, cwd=tmp_path)
    assert done.stdout == b"answer 42\n"


def test_name_holds_the_content(tmp_path: Path) -> None:
    """Equal content keeps its file, other content gets another name."""
    first = make_package(source(tmp_path), tmp_path)
    before = first.stat()
    assert make_package(source(tmp_path), tmp_path) == first
    assert first.stat().st_mtime_ns == before.st_mtime_ns
    assert make_package(source(tmp_path, "print(1)\n"), tmp_path) != first


def test_damaged_file_is_replaced(tmp_path: Path) -> None:
    """A file of the right name and the wrong content is not trusted."""
    path = make_package(source(tmp_path), tmp_path)
    whole = path.read_bytes()
    path.write_bytes(b"")
    make_package(source(tmp_path), tmp_path)
    assert path.read_bytes() == whole
    assert [file.name for file in tmp_path.glob("workloads-*")] == [path.name]


def test_directory_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    """The error names both places."""
    (tmp_path / "file").write_text("")
    with pytest.raises(PackageError, match="cannot pack"):
        make_package(source(tmp_path), tmp_path / "file")


def test_installed_workloads_are_found_without_importing_them() -> None:
    """The package beside the agent is found by its place."""
    assert (installed_workloads() / "__init__.py").is_file()
    ask = (
        "import sys; from agent.probes.package import installed_workloads as f; f(); print('workloads' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.strip() == "False"
