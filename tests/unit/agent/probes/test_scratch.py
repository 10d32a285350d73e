"""Directories of probe children: removed at the end of a run, or by the next start."""

import os
import subprocess
import sys
from pathlib import Path

from structlog.testing import capture_logs

from agent.clock import SystemClock
from agent.probes.descendants import MARK
from agent.probes.scratch import Scratch


def test_a_directory_lasts_as_long_as_its_run(tmp_path: Path) -> None:
    """Two runs have two; a sweep, also by another process's eyes, leaves both alone."""
    scratch, other = (Scratch(tmp_path / "scratch", SystemClock()) for _ in range(2))
    with scratch.directory() as first, other.directory() as second:
        (first / "spec").write_text("x")
        other.sweep()
        assert (first / "spec").exists()
        assert second.is_dir()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_what_a_killed_process_left_is_swept_with_its_children(tmp_path: Path) -> None:
    """A directory that nobody holds goes, and whatever still runs under its mark; other names are not ours."""
    left = tmp_path / "probe-abc"
    left.mkdir()
    (left / "image.jpg").write_text("x")
    (tmp_path / "workloads.pyz").write_text("x")
    orphan = subprocess.Popen(
        [sys.executable, "-c", "input()"], env={**os.environ, MARK: str(left)}, stdin=subprocess.PIPE
    )
    with capture_logs() as logs:
        Scratch(tmp_path, SystemClock()).sweep()
    orphan.wait(10.0)
    assert not Path(f"/proc/{orphan.pid}").exists()
    assert orphan.stdin is not None
    orphan.stdin.close()
    assert [path.name for path in tmp_path.iterdir()] == ["workloads.pyz"]
    assert [entry["path"] for entry in logs] == [str(left)]


def test_nothing_there_is_nothing_to_sweep(tmp_path: Path) -> None:
    """Before the first run there is no root."""
    Scratch(tmp_path / "absent", SystemClock()).sweep()
    assert not (tmp_path / "absent").exists()
