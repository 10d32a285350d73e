"""The one door to /proc, /sys and what is mounted there: bounded reads under roots that can be replaced."""

import os
from typing import Final

READ_LIMIT_BYTES: Final = 1 << 20
SEARCH_LIMIT: Final = 20_000
_CHUNK_BYTES: Final = 1 << 16


class Tree:
    """A directory tree of the kernel's making; paths are relative to its root."""

    def __init__(self, root: str) -> None:
        """Take the root, as ``/proc``."""
        self._root = root

    def read(self, path: str, limit_bytes: int = READ_LIMIT_BYTES) -> str:
        """Return the text of one file, cut at ``limit_bytes``; bytes that are not UTF-8 become U+FFFD.

        Raises:
            OSError: the file is not there or cannot be read.
        """
        descriptor = os.open(f"{self._root}/{path}", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            chunks = []
            left_bytes = limit_bytes
            while left_bytes > 0 and (chunk := os.read(descriptor, min(left_bytes, _CHUNK_BYTES))):
                chunks.append(chunk)
                left_bytes -= len(chunk)
        finally:
            os.close(descriptor)
        return b"".join(chunks).decode("utf-8", "replace")

    def read_or_none(self, path: str) -> str | None:
        """Return the text of one file, or None where it is not there or cannot be read."""
        try:
            return self.read(path)
        except OSError:
            return None

    def names(self, path: str) -> list[str]:
        """Return the names in one directory, in no order.

        Raises:
            OSError: the directory is not there or cannot be read.
        """
        return os.listdir(f"{self._root}/{path}")  # noqa: PTH208 - names, and no Path made for each

    def has_directory(self, path: str) -> bool:
        """Return whether there is such a directory."""
        return os.path.isdir(f"{self._root}/{path}")  # noqa: PTH112 - several a tick: no Path made for each

    def inode(self, path: str) -> int | None:
        """Return the inode number of a file or directory; None where it is not there."""
        try:
            return os.stat(f"{self._root}/{path}").st_ino  # noqa: PTH116 - as above
        except OSError:
            return None

    def find_directory(self, path: str, inode: int) -> str | None:
        """Return where below ``path`` the directory of that inode is: "" for ``path`` itself, else as "/a/b".

        None where it is not among the first directories, SEARCH_LIMIT of them.
        """
        if self.inode(path) == inode:
            return ""
        waiting = [""]
        for below in waiting:  # grows while it is walked: nearest directories first
            try:
                entries = os.scandir(f"{self._root}/{path}{below}")
            except OSError:
                continue
            with entries:
                for entry in entries:
                    if entry.inode() == inode:
                        return f"{below}/{entry.name}"
                    if len(waiting) < SEARCH_LIMIT and entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{below}/{entry.name}")
        return None

    def link(self, path: str) -> str:
        """Return what a symbolic link points to.

        Raises:
            OSError: there is no such link or it cannot be read.
        """
        return os.readlink(f"{self._root}/{path}")  # noqa: PTH115 - the kernel's text, not a path
