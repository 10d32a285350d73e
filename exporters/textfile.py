"""The metrics page as a file for node_exporter's textfile collector."""

import os
from contextlib import suppress
from pathlib import Path


def write_textfile(path: Path, page: bytes) -> None:
    """Put ``page`` in place of ``path`` in one step; a reader sees the old page or the new one, whole.

    Raises:
        OSError: the page could not be written (no space, no permission); the old file stands.
    """
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as stream:
            stream.write(page)
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(path)
    except OSError:
        with suppress(OSError):
            unfinished.unlink()
        raise
