"""Which Slurm job a card belongs to."""

from pathlib import Path

import msgspec
import pytest

from agent.allocation.jobs import jobs_of_processes, noted_jobs
from agent.host.files import Tree
from agent.model.allocation import Allocation
from agent.model.snapshot import GpuProcess
from tests.support.snapshots import card, identity, uuid_of
from tests.support.trees import make_tree

_CARDS = [identity(index) for index in range(8)]


@pytest.mark.parametrize("note", ["0,3\n", f"{uuid_of(0)} 3", "0, 3"])
def test_a_note_names_cards_by_index_or_uuid(tmp_path: Path, note: str) -> None:
    """As Slurm's own variable has it, or by hand."""
    found = noted_jobs(make_tree(tmp_path, {"4711": note, "readme": "1", ".4712.new": "2"}), _CARDS)
    assert found == (Allocation(uuid_of(0), job="4711"), Allocation(uuid_of(3), job="4711"))


def test_an_empty_note_gives_no_card_away(tmp_path: Path) -> None:
    """A job without cards."""
    assert noted_jobs(make_tree(tmp_path, {"4711": "\n"}), _CARDS) == ()


def test_a_folder_not_made_yet_holds_no_job_and_one_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    """The folder comes with the first job after a boot; a file in its place means that nobody knows."""
    assert noted_jobs(Tree(str(tmp_path / "jobs")), _CARDS) == ()
    (tmp_path / "jobs").write_text("")
    with pytest.raises(NotADirectoryError):
        noted_jobs(Tree(str(tmp_path / "jobs")), _CARDS)


@pytest.mark.parametrize(
    "files",
    [
        {"9/cgroup": "0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0\n"},
        {"9/cgroup": "5:devices:/slurm/uid_1000/job_42/step_batch\n1:name=systemd:/slurm/uid_1000/job_42\n"},
        {"9/cgroup": "0::/user.slice\n", "9/environ": "A=b\0SLURM_JOB_ID=42\0C=d"},
        {"9/environ": "SLURM_JOB_ID=42"},
    ],
)
def test_a_process_tells_its_job(tmp_path: Path, files: dict[str, str]) -> None:
    """By its control group of either version, else by its environment where that may be read."""
    busy = msgspec.structs.replace(card(1), processes=(GpuProcess(9, "compute"), GpuProcess(10, "compute")))
    assert jobs_of_processes(make_tree(tmp_path, files), (card(0), busy)) == (Allocation(uuid_of(1), job="42"),)


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"9/cgroup": "0::/kubepods/job_42\n"},
        {"9/cgroup": "0::/slurm/job_x\n", "9/environ": "XSLURM_JOB_ID=42\0SLURM_JOB_ID=\0SLURM_JOB_ID=4;2"},
    ],
)
def test_what_is_no_job_is_none(tmp_path: Path, files: dict[str, str]) -> None:
    """A process that is gone, another scheduler's group, look-alikes."""
    busy = msgspec.structs.replace(card(1), processes=(GpuProcess(9, "compute"),))
    assert jobs_of_processes(make_tree(tmp_path, files), (busy,)) == ()
