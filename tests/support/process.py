"""What a process holds, seen from outside."""

import contextlib
import time
from pathlib import Path
from typing import NamedTuple


class Holdings(NamedTuple):
    """One look at a process."""

    at_s: float
    memory_bytes: int
    """Anonymous memory that is resident: what a leak would make grow."""
    descriptors: int
    threads: int
    children: int
    zombies: int


def look(pid: int) -> Holdings:
    """Return what the process ``pid`` holds now."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    status = dict(line.split(":", 1) for line in lines)
    below = children(pid)
    return Holdings(
        at_s=time.monotonic(),
        memory_bytes=int(status["RssAnon"].split()[0]) * 1024,
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        threads=int(status["Threads"]),
        children=len(below),
        zombies=sum(is_zombie(child) for child in below),
    )


def children(pid: int) -> list[int]:
    """Return the process ids of all children, whichever thread started them, zombies included."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended
            found += map(int, (task / "children").read_text().split())
    return found


def is_zombie(pid: int) -> bool:
    """Return whether the process has ended and waits to be reaped."""
    return state_of(pid) == "Z"


def state_of(pid: int) -> str:
    """Return the kernel's letter for a process's state; empty where there is none of that id."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return ""


def cpu_s(pid: int) -> float:
    """Return the user and system seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def descendants(pid: int) -> set[int]:
    """Return all processes below ``pid``."""
    found: set[int] = set()
    ahead = [pid]
    while ahead:
        try:
            below = children(ahead.pop())
        except OSError:
            continue
        ahead += below
        found |= set(below)
    return found
