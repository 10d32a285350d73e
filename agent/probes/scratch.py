"""Where probe children work: a directory each, held while its run lasts, swept by the next start where it is not."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from agent.clock import Clock
from agent.probes.descendants import kill_marked

_PREFIX: Final = "probe-"

_log = structlog.get_logger("probe")


class Scratch:
    """The directories below one root.

    A run holds a lock on its directory that ends with the process, however that dies: what nobody holds was
    left by one that was killed. Several processes may share a root.
    """

    def __init__(self, root: Path, clock: Clock) -> None:
        """Take the root, which is made when the first directory is."""
        self._root = root
        self._clock = clock

    @contextlib.contextmanager
    def directory(self) -> Iterator[Path]:
        """Give a fresh directory and remove it at the end.

        Raises:
            OSError: It cannot be made.
        """
        self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _held(self._root):
            path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._root))
            holding = contextlib.ExitStack()
            holding.enter_context(_held(path))
        with holding:
            try:
                yield path
            finally:
                shutil.rmtree(path, ignore_errors=True)

    def sweep(self) -> None:
        """Remove what killed processes left here, and end the children that they left running."""
        with contextlib.suppress(OSError), _held(self._root):
            for path in self._root.glob(f"{_PREFIX}*"):
                if _is_abandoned(path):
                    kill_marked(str(path), self._clock)
                    shutil.rmtree(path, ignore_errors=True)
                    _log.info("probe_leftovers_removed", path=str(path))


@contextlib.contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold the lock of a directory."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _is_abandoned(path: Path) -> bool:
    """Return whether nobody holds a directory."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)
