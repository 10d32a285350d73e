"""Whose processes are on a card: ours, a desktop's, or a tenant's."""

import os
from collections.abc import Collection
from typing import Final, Literal

from agent.host.files import Tree
from agent.host.pid_namespace import host_pids_visible
from agent.model.snapshot import GpuProcess

DESKTOP_UTILIZATION: Final = 0.05
"""Below this utilisation a graphics-only process is a desktop at rest, not a tenant."""


def pids_are_the_hosts(setting: Literal["auto", "yes", "no"], proc: Tree = Tree("/proc")) -> bool:  # noqa: B008
    """Return whether the process ids that the driver names mean anything here; ``auto`` finds out."""
    return setting == "yes" or (setting == "auto" and host_pids_visible(proc))


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
