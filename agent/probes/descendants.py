"""Finding what a probe child left behind: every descendant carries the child's directory in its environment."""

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from agent.clock import Clock

MARK: Final = "HEATSOAK_PROBE_ID"
_MOST_S: Final = 1.0
_PAUSE_S: Final = 0.02

_log = structlog.get_logger("probe")


def kill_marked(mark: str, clock: Clock) -> None:
    """Kill every process whose environment carries ``mark``, within a second.

    A mark is inherited by whatever the child starts, also by what left its session and its parent.
    Where such an orphan has become this process's own child (in a container, as process 1), it is reaped.
    """
    until_s = clock.monotonic_s() + _MOST_S
    killed: set[int] = set()
    while clock.monotonic_s() < until_s:
        found = set(marked(mark))
        for pid in found - killed:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        killed |= found
        killed -= _reaped(killed)
        if not found:
            break
        clock.wait(threading.Event(), _PAUSE_S)
    if killed:
        _log.debug("probe_descendants_killed", pids=sorted(killed))


def marked(mark: str, proc: Path = Path("/proc")) -> Iterator[int]:
    """Yield the ids of living processes whose environment carries ``mark``."""
    wanted = os.fsencode(f"{MARK}={mark}")
    for entry in proc.iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    yield int(entry.name)


def _reaped(pids: set[int]) -> set[int]:
    done = set()
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                done.add(pid)
    return done
