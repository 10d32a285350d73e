"""The examples for Slurm: what a prolog notes, and what an epilog does with a bad card."""

import os
import subprocess
from pathlib import Path

import pytest

from agent.allocation.jobs import noted_jobs
from agent.host.files import Tree
from tests.support.snapshots import identity

_SLURM = Path(__file__).parents[3] / "deploy" / "slurm"


def _run(script: str, folder: Path, probe: str = "exit 0", gpus: str = "1,3") -> str:
    """Run a script with stand-ins for heatsoak and scontrol; return what was called."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    for name, body in (("heatsoak", probe), ("scontrol", "exit 0")):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{folder}/calls\n{body}\n')
        (programs / name).chmod(0o755)
    environment = {
        "PATH": f"{programs}:{os.environ['PATH']}",
        "HEATSOAK_JOBS_DIR": str(folder / "jobs"),
        "SLURM_JOB_ID": "42",
        "SLURM_JOB_GPUS": gpus,
        "SLURMD_NODENAME": "n1",
    }
    ended = subprocess.run([str(_SLURM / script)], env=environment, timeout=30, check=False)
    assert ended.returncode == 0
    calls = folder / "calls"
    return calls.read_text() if calls.exists() else ""


def test_what_the_prolog_notes_the_agent_reads_and_the_epilog_takes_back(tmp_path: Path) -> None:
    """The two cards of the job are its own from prolog to epilog."""
    cards = [identity(index) for index in range(4)]
    notes = Tree(str(tmp_path / "jobs"))
    _run("prolog.sh", tmp_path)
    assert [(one.uuid, one.job) for one in noted_jobs(notes, cards)] == [(cards[i].uuid, "42") for i in (1, 3)]
    assert _run("epilog.sh", tmp_path) == "heatsoak probe --quick --gpu 1 --gpu 3\n"
    assert noted_jobs(notes, cards) == ()


def test_a_bad_card_drains_the_node_with_the_reason(tmp_path: Path) -> None:
    """Exit code 10, and only that, takes the node out."""
    calls = _run("epilog.sh", tmp_path, probe="echo gpu 1 degraded; exit 10")
    assert calls.splitlines()[-1] == "scontrol update NodeName=n1 State=DRAIN Reason=heatsoak: gpu 1 degraded "


@pytest.mark.parametrize("code", [0, 2, 3, 11, 70, 127])
def test_what_could_not_be_judged_drains_nothing(tmp_path: Path, code: int) -> None:
    """Not even where heatsoak itself fails."""
    assert "scontrol" not in _run("epilog.sh", tmp_path, probe=f"exit {code}")


@pytest.mark.parametrize("script", ["prolog.sh", "epilog.sh"])
def test_a_job_without_cards_costs_nothing(tmp_path: Path, script: str) -> None:
    """Nothing noted, nothing called."""
    assert _run(script, tmp_path, gpus="") == ""
    assert not (tmp_path / "jobs").exists()
