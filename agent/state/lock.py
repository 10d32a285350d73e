"""One agent a state directory: a lock that ends with the process that holds it."""

import fcntl
import os
from pathlib import Path

from agent.errors import StateError


class DirectoryLock:
    """An advisory lock on a file; the kernel frees it when the process dies, however it dies.

    Children are started by exec, which closes the descriptor, so that none of them keeps the lock.
    """

    def __init__(self, path: Path) -> None:
        """Take the lock and write this process's id into ``path``.

        Raises:
            StateError: another process holds it.
            OSError: the file cannot be made or opened.
        """
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._fd)
            raise StateError(
                f"{path.parent}: another heatsoak (process {holder}) uses this state directory; "
                "stop it, or name another directory with --state-dir"
            ) from None
        except OSError:
            os.close(self._fd)
            raise
        self._write_pid()

    def release(self) -> None:
        """Give the lock back; the file stays, as removing it would let two processes hold two locks."""
        os.close(self._fd)

    def _write_pid(self) -> None:
        """Name the holder for people; a full disk may leave the name out, the lock holds all the same."""
        try:
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)
        except OSError:
            return
