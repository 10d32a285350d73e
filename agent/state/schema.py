"""The tables, and how a file of an older version becomes one of this version."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

APPLICATION_ID: Final = 0x48454154
"""``HEAT`` in the file's header: a database of something else is never touched."""

MIGRATIONS: Final[tuple[tuple[str, ...], ...]] = (
    (
        """CREATE TABLE probe (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            uuid TEXT NOT NULL,
            series TEXT NOT NULL,
            wall_s REAL NOT NULL,
            kind TEXT NOT NULL,
            record BLOB NOT NULL,
            UNIQUE (uuid, series, kind, wall_s)
        )""",
        """CREATE TABLE reference (
            uuid TEXT NOT NULL,
            key TEXT NOT NULL,
            made_wall_s REAL NOT NULL,
            origin TEXT NOT NULL,
            record BLOB NOT NULL,
            UNIQUE (uuid, key, made_wall_s, origin)
        )""",
        """CREATE TABLE card (
            uuid TEXT PRIMARY KEY,
            record BLOB NOT NULL,
            first_seen_wall_s REAL NOT NULL,
            last_seen_wall_s REAL NOT NULL
        )""",
        "CREATE TABLE document (name TEXT PRIMARY KEY, data BLOB NOT NULL)",
    ),
)
"""Statements that lead from version n to n + 1; only ever appended to."""

VERSION: Final = len(MIGRATIONS)


class ForeignFileError(sqlite3.DatabaseError):
    """The file is a database, but not ours or not whole."""


class NewerFileError(Exception):
    """The file was written by a later version of heatsoak."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Run the body in one write transaction: all of it is kept or none."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check(connection: sqlite3.Connection) -> None:
    """See that the file is ours, of a version we know, and whole; an empty file passes.

    Raises:
        NewerFileError: a later version wrote it.
        sqlite3.DatabaseError: it is something else's, or damaged.
    """
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != APPLICATION_ID:
        raise ForeignFileError(f"application id {application:#x}, where heatsoak writes {APPLICATION_ID:#x}")
    if version > VERSION:
        raise NewerFileError(f"version {version}, where this heatsoak knows {VERSION}")
    faults = [fault for (fault,) in connection.execute("PRAGMA quick_check(3)")]
    if faults != ["ok"]:
        raise ForeignFileError("; ".join(faults))


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the tables to this version, all steps or none."""
    with transaction(connection):
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for statements in MIGRATIONS[version:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
