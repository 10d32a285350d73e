"""Opening the file, telling its troubles apart, setting a bad one aside, carrying rows over."""

import errno
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from agent.model.state import StateTrouble
from agent.state.schema import NewerFileError, check, migrate, transaction

Connect = Callable[[str], sqlite3.Connection]

_BUSY_S: Final = 2.0
_BY_MESSAGE: Final[tuple[tuple[str, StateTrouble], ...]] = (
    ("disk is full", "disk_full"),
    ("readonly database", "read_only"),
    ("malformed", "damaged"),
    ("not a database", "damaged"),
    ("locked", "locked"),
    ("disk I/O error", "io_error"),
)
_BY_ERRNO: Final[dict[int, StateTrouble]] = {
    errno.EACCES: "permission_denied",
    errno.EPERM: "permission_denied",
    errno.EROFS: "read_only",
    errno.ENOSPC: "disk_full",
    errno.EDQUOT: "disk_full",
    errno.EFBIG: "disk_full",
    errno.EIO: "io_error",
}
_CARRY: Final = {
    "SELECT uuid, series, wall_s, kind, record FROM probe ORDER BY id": (
        "INSERT OR IGNORE INTO probe (uuid, series, wall_s, kind, record) VALUES (?, ?, ?, ?, ?)"
    ),
    "SELECT uuid, key, made_wall_s, origin, record FROM reference": (
        "INSERT OR IGNORE INTO reference VALUES (?, ?, ?, ?, ?)"
    ),
    "SELECT uuid, record, first_seen_wall_s, last_seen_wall_s FROM card": (
        """INSERT INTO card VALUES (?, ?, ?, ?) ON CONFLICT (uuid) DO UPDATE SET record = excluded.record,
        first_seen_wall_s = min(first_seen_wall_s, excluded.first_seen_wall_s),
        last_seen_wall_s = max(last_seen_wall_s, excluded.last_seen_wall_s)"""
    ),
    "SELECT name, data FROM document": "INSERT OR REPLACE INTO document VALUES (?, ?)",
}
"""How each table is read from one database and added to another that may hold some of the rows already."""


def connect(database: str) -> sqlite3.Connection:
    """Open a connection in autocommit mode, usable from every thread that takes the store's lock."""
    return sqlite3.connect(
        database, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, uri=database.startswith("file:")
    )


def in_memory() -> sqlite3.Connection:
    """Return an empty database of this version in memory."""
    memory = connect(":memory:")
    migrate(memory)
    return memory


def open_file(path: Path, opener: Connect = connect) -> sqlite3.Connection:
    """Open ``path`` for writing, made anew where it is missing, brought to this version where it is older.

    Raises:
        NewerFileError: a later version wrote it; it is left as it is.
        sqlite3.DatabaseError: it is damaged, not ours, or cannot be written; ``trouble_of`` tells which.
    """
    connection = opener(str(path))
    try:
        check(connection)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 1")  # writes are few; the main file alone is then complete
        migrate(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def trouble_of(error: Exception, path: Path) -> StateTrouble:
    """Return which trouble ``error``, met while using ``path``, stands for."""
    if isinstance(error, NewerFileError):
        return "newer_version"
    if isinstance(error, OSError):
        return _BY_ERRNO.get(error.errno or 0, "unusable")
    for words, trouble in _BY_MESSAGE:
        if words in str(error):
            return _refine(trouble, path)
    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
        return "damaged"
    return _refine("unusable", path)


def _refine(trouble: StateTrouble, path: Path) -> StateTrouble:
    """Ask the file system where SQLite's word leaves open why it cannot write."""
    if trouble not in ("read_only", "io_error", "unusable"):
        return trouble
    target = path if path.exists() else path.parent
    if target.exists() and os.statvfs(target).f_flag & os.ST_RDONLY:
        return "read_only"
    if not os.access(path.parent, os.W_OK | os.X_OK) or (path.exists() and not os.access(path, os.R_OK | os.W_OK)):
        return "permission_denied"
    return trouble


def set_aside(path: Path, wall_s: float) -> Path:
    """Rename a file that cannot be used, and what SQLite keeps beside it; return the new name.

    Raises:
        OSError: it cannot be renamed.
    """
    stamp = datetime.fromtimestamp(wall_s, tz=timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    target = path.with_name(f"{path.name}.bad-{stamp}")
    for number in range(1, 1000):
        if not target.exists():
            break
        target = path.with_name(f"{path.name}.bad-{stamp}-{number}")
    for suffix in ("-wal", "-shm"):
        beside = path.with_name(path.name + suffix)
        if beside.exists():
            beside.rename(target.with_name(target.name + suffix))
    path.rename(target)
    return target


def copy_of(path: Path) -> sqlite3.Connection:
    """Return in memory what can be read of ``path``, row by row up to the first that cannot; often all, maybe none."""
    memory = in_memory()
    if not path.exists():
        return memory
    for mode in ("mode=ro", "mode=ro&immutable=1"):  # the second where the folder takes no files beside it
        try:
            with closing(connect(f"{path.resolve().as_uri()}?{mode}")) as source:
                source.execute("PRAGMA writable_schema = ON")  # else a truncated file is not read at all
                source.execute("SELECT count(*) FROM sqlite_master")
                with transaction(memory):
                    for select, insert in _CARRY.items():
                        memory.executemany(insert, _readable(source, select))
        except sqlite3.Error:
            continue
        break
    return memory


def merge(memory: sqlite3.Connection, file: sqlite3.Connection) -> None:
    """Add to ``file`` what ``memory`` has beside it, in one transaction.

    No row of the file is lost: of two learnt references the older counts, so none made in memory replaces it.

    Raises:
        sqlite3.Error: the file cannot be written; it is as it was.
    """
    with transaction(file):
        for select, insert in _CARRY.items():
            file.executemany(insert, memory.execute(select))


def _readable(source: sqlite3.Connection, select: str) -> Iterator[tuple[object, ...]]:
    """Yield rows up to the first that cannot be read."""
    try:
        yield from source.execute(select)
    except sqlite3.Error:
        return
