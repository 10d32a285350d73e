"""Whether process ids here are the host's."""

from typing import Final

from agent.host.files import Tree

_INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
"""The kernel gives the first pid namespace this number (PROC_PID_INIT_INO) on every machine."""


def is_confined(proc: Tree) -> bool:
    """Return whether ``proc`` is that of a pid namespace below the host's, as a container's own; False where unknown.

    The host's /proc, mounted into a container, is not: there our process has an id in each namespace around it.
    """
    try:
        nested = proc.link("self/ns/pid") != _INITIAL_PID_NAMESPACE
        ids = next(line for line in proc.read("self/status").splitlines() if line.startswith("NSpid:"))
    except (OSError, StopIteration):
        return False
    return nested and len(ids.split()) == 2


def host_pids_visible(proc: Tree) -> bool:
    """Return whether this process lives in the host's own pid namespace; False where that cannot be known."""
    try:
        return proc.link("self/ns/pid") == _INITIAL_PID_NAMESPACE
    except OSError:
        return False
