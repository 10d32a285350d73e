"""Directories of benchmarks: gone at the end, or with the next one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent.bench.workplace import workplace
from agent.clock import SystemClock
from agent.probes.descendants import MARK
from agent.probes.scratch import Scratch


def test_each_benchmark_has_an_empty_directory(tmp_path: Path) -> None:
    """Two at a time leave each other alone; nothing stays."""
    with workplace(SystemClock(), tmp_path) as first:
        (first / "cache").mkdir()
        with workplace(SystemClock(), tmp_path) as second:
            assert first != second
            assert list(second.iterdir()) == []
        assert (first / "cache").is_dir()
    assert list(tmp_path.glob("*/*")) == []


def test_what_a_killed_benchmark_left_goes_with_the_next_one(tmp_path: Path) -> None:
    """Its directory and its children, which bear the mark of a directory within; a living benchmark's child stays."""
    with workplace(SystemClock(), tmp_path) as living:
        left = living.parent / "probe-killed" / "scratch" / "probe-child"
        left.mkdir(parents=True)
        orphan = subprocess.Popen(
            [sys.executable, "-c", "input()"], env={**os.environ, MARK: str(left)}, stdin=subprocess.PIPE
        )
        with Scratch(living / "scratch", SystemClock()).directory() as child:
            with workplace(SystemClock(), tmp_path) as fresh:
                assert {path.name for path in living.parent.iterdir()} == {living.name, fresh.name}
            assert child.is_dir()
    orphan.wait(10.0)
    assert not Path(f"/proc/{orphan.pid}").exists()
    assert orphan.stdin is not None
    orphan.stdin.close()


@pytest.mark.parametrize("squatted", ["link", "open to others"])
def test_what_somebody_else_put_there_is_not_used(tmp_path: Path, squatted: str) -> None:
    """A guessable name in a directory that all may write to."""
    root = tmp_path / f"heatsoak-bench-{os.getuid()}"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if squatted == "link":
        root.symlink_to(elsewhere)
    else:
        root.mkdir()
        root.chmod(0o777)
    with workplace(SystemClock(), tmp_path) as directory:
        assert directory.parent == tmp_path
        assert list(root.iterdir()) == []
