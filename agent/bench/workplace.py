"""Where a benchmark's children work: a directory of its own, which the next one removes where it was killed."""

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from agent.clock import Clock
from agent.probes.scratch import Scratch


@contextlib.contextmanager
def workplace(clock: Clock, temporary: Path | None = None) -> Iterator[Path]:
    """Give an empty directory, so that first steps are as cold in each benchmark, and remove it at the end.

    Before that, what killed benchmarks of this user left below ``temporary`` (by default the system's directory for
    temporary files) is removed, and the children that they left running are ended.

    Raises:
        OSError: The directory cannot be made.
    """
    root = (temporary or Path(tempfile.gettempdir())) / f"heatsoak-bench-{os.getuid()}"
    if not _is_own(root):
        with tempfile.TemporaryDirectory(prefix="heatsoak-bench-", dir=temporary) as name:
            yield Path(name)
        return
    for children in root.glob("*/scratch"):
        Scratch(children, clock).sweep()
    scratch = Scratch(root, clock)
    scratch.sweep()
    with scratch.directory() as directory:
        yield directory


def _is_own(root: Path) -> bool:
    """Make a directory whose name others can guess, and return whether it is nobody else's."""
    with contextlib.suppress(FileExistsError):
        root.mkdir(mode=0o700)
    found = root.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077
