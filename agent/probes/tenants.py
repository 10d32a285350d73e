"""Whose processes are on a card: ours, a desktop's, or a tenant's."""

import contextlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final, Literal

from agent.model.snapshot import GpuProcess

DESKTOP_UTILIZATION: Final = 0.05
"""Below this utilisation a graphics-only process is a desktop at rest, not a tenant."""
_HOST_PID_NAMESPACE: Final = "pid:[4026531836]"
"""The kernel's fixed number of the first pid namespace (PROC_PID_INIT_INO)."""


def pids_are_the_hosts(setting: Literal["auto", "yes", "no"], proc: Path = Path("/proc")) -> bool:
    """Return whether the process ids that the driver names mean anything here.

    ``auto`` holds where this process sees the host's own process ids: outside any container, or in one
    that shares them.
    """
    if setting != "auto":
        return setting == "yes"
    with contextlib.suppress(OSError):
        return str((proc / "self/ns/pid").readlink()) == _HOST_PID_NAMESPACE
    return False


def tenants(
    processes: Collection[GpuProcess], *, sessions: Collection[int], desktop_at_rest: bool
) -> tuple[GpuProcess, ...]:
    """Return the processes that are somebody else's.

    ``sessions`` are the sessions of our own probe children, the last ones ended included: the driver may
    list a process for a moment after its end. Where ``desktop_at_rest``, graphics-only processes do not count.
    """
    return tuple(
        process
        for process in processes
        if not (desktop_at_rest and process.kind == "graphics") and not _in_session(process.pid, sessions)
    )


def _in_session(pid: int, sessions: Collection[int]) -> bool:
    if pid in sessions:
        return True
    try:
        return bool(sessions) and os.getsid(pid) in sessions
    except OSError:
        return False
