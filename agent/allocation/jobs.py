"""Slurm jobs: those a prolog has noted down, and those that processes on the cards belong to."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from agent.host.files import Tree
from agent.model.allocation import Allocation
from agent.model.snapshot import Card, CardIdentity

_IN_CGROUP = re.compile(r"slurm.*/job_(\d+)(?:/|$)", re.MULTILINE)
_IN_ENVIRONMENT = re.compile(r"(?:^|\0)SLURM_JOB_ID=(\d+)(?:\0|$)")
_NOTE_BYTES: Final = 4096


def noted_jobs(folder: Tree, cards: Sequence[CardIdentity]) -> tuple[Allocation, ...]:
    """Return what a prolog noted: a file a job, named by its id, holding indices or UUIDs of cards.

    A folder that is not there says that no prolog has run since the boot.

    Raises:
        OSError: the folder cannot be read.
    """
    found = []
    try:
        names = folder.names(".")
    except FileNotFoundError:
        return ()
    for job in sorted(name for name in names if name.isdecimal()):
        words = set(re.split(r"[\s,]+", _note(folder, job)))
        found += [Allocation(card.uuid, job=job) for card in cards if {str(card.index), card.uuid} & words]
    return tuple(found)


def jobs_of_processes(proc: Tree, cards: Sequence[Card]) -> tuple[Allocation, ...]:
    """Return the jobs whose processes are on the cards; ``proc`` must be the host's."""
    return tuple(dict.fromkeys(_jobs_of_processes(proc, cards)))


def _jobs_of_processes(proc: Tree, cards: Sequence[Card]) -> Iterator[Allocation]:
    for card in cards:
        for process in card.processes or ():
            job = _job(proc, process.pid)
            if job:
                yield Allocation(card.identity.uuid, job=job)


def _job(proc: Tree, pid: int) -> str:
    """Return the job of a process; empty without one.

    Its control group anybody may read and nobody can forge; the environment only its own user and root may read.
    """
    found = _IN_CGROUP.search(proc.read_or_none(f"{pid}/cgroup") or "")
    if found is None:
        found = _IN_ENVIRONMENT.search(proc.read_or_none(f"{pid}/environ") or "")
    return found[1] if found else ""


def _note(folder: Tree, job: str) -> str:
    try:
        return folder.read(job, _NOTE_BYTES)
    except OSError:  # the job ended meanwhile
        return ""
