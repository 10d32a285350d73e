"""Whether process ids here are the host's."""

from typing import Final

from agent.host.files import Tree

_INITIAL_PID_NAMESPACE: Final = "pid:[4026531836]"
"""The kernel gives the first pid namespace this number (PROC_PID_INIT_INO) on every machine."""


def host_pids_visible(proc: Tree) -> bool:
    """Return whether this process lives in the host's own pid namespace; False where that cannot be known."""
    try:
        return proc.link("self/ns/pid") == _INITIAL_PID_NAMESPACE
    except OSError:
        return False
