"""Finished probes, bounded by count: a wall clock that jumps loses nothing."""

import sqlite3
from typing import Final

from agent.model.probe import ProbeRecord
from agent.model.reference import series_of
from agent.state.rows import decoded, encoded

KEEP_JUDGED: Final = 500
"""Judged records kept of each card and series: three weeks at one an hour."""
KEEP_OTHER: Final = 50
"""Other records (skipped, failed, not comparable) kept of each card and series."""
KEEP_IN_ALL: Final = 60_000
"""Records kept in all, whatever number of cards comes and goes."""


def add(connection: sqlite3.Connection, record: ProbeRecord) -> None:
    """Add a record and drop the oldest beyond the bounds; the same record twice is kept once."""
    series = "/".join(series_of(record.result))
    connection.execute(
        "INSERT OR IGNORE INTO probe (uuid, series, wall_s, judged, record) VALUES (?, ?, ?, ?, ?)",
        (record.uuid, series, record.wall_s, record.judged, encoded(record)),
    )
    connection.execute(
        """DELETE FROM probe WHERE id IN (
            SELECT id FROM probe WHERE uuid = ? AND series = ? AND judged = ? ORDER BY id DESC LIMIT -1 OFFSET ?
        )""",
        (record.uuid, series, record.judged, KEEP_JUDGED if record.judged else KEEP_OTHER),
    )
    connection.execute("DELETE FROM probe WHERE id <= (SELECT max(id) FROM probe) - ?", (KEEP_IN_ALL,))


def newest(connection: sqlite3.Connection, judged: int, other: int) -> tuple[ProbeRecord, ...]:
    """Return the newest records of each card and series, oldest first by when they ended."""
    rows = connection.execute(
        """SELECT record FROM (
            SELECT record, wall_s, id, judged,
                   row_number() OVER (PARTITION BY uuid, series, judged ORDER BY wall_s DESC, id DESC) AS age
            FROM probe
        ) WHERE age <= CASE judged WHEN 1 THEN ? ELSE ? END ORDER BY wall_s, id""",
        (judged, other),
    )
    return tuple(record for record, _ in decoded(ProbeRecord, rows))
