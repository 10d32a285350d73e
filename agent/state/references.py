"""References, only ever added to: the oldest learnt one or an operator's newest counts."""

import sqlite3

import msgspec

from agent.model.reference import Reference
from agent.state.rows import decoded, encoded


def add(connection: sqlite3.Connection, reference: Reference) -> None:
    """Add a reference; the same one twice is kept once."""
    key = msgspec.json.encode((reference.series, reference.circumstances)).decode()
    connection.execute(
        "INSERT OR IGNORE INTO reference VALUES (?, ?, ?, ?, ?)",
        (reference.uuid, key, reference.made_wall_s, reference.origin, encoded(reference)),
    )


def every(connection: sqlite3.Connection) -> tuple[Reference, ...]:
    """Return all references, oldest first; a row of unknown form is left out with a warning."""
    rows = connection.execute("SELECT record FROM reference ORDER BY made_wall_s, uuid, key")
    return tuple(reference for reference, _ in decoded(Reference, rows))
