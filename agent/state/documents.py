"""Small named documents: whatever a part of the agent wants back after a restart."""

import sqlite3


def load(connection: sqlite3.Connection, name: str) -> bytes | None:
    """Return the document; None where there is none."""
    row = connection.execute("SELECT data FROM document WHERE name = ?", (name,)).fetchone()
    return bytes(row[0]) if row else None


def save(connection: sqlite3.Connection, name: str, data: bytes) -> None:
    """Replace the document."""
    connection.execute("INSERT OR REPLACE INTO document VALUES (?, ?)", (name, data))
