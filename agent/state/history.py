"""Finished probes, bounded by count: a wall clock that jumps loses nothing."""

import sqlite3
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from agent.model.probe import ProbeRecord
from agent.model.reference import series_of
from agent.state.rows import decoded, encoded

Kind = Literal["judged", "wrong", "other"]
"""What may be compared with a reference, what computed a wrong answer, and the rest."""

KEEP: Final[Mapping[Kind, int]] = MappingProxyType({"judged": 500, "wrong": 50, "other": 50})
"""Records kept of each card and series: three weeks of judged ones at one an hour."""
IN_VIEW: Final[Mapping[Kind, int]] = MappingProxyType({"judged": 150, "wrong": 10, "other": 3})
"""The newest of each, which the rules look at: six days of judged ones."""
KEEP_IN_ALL: Final = 60_000
"""Records kept in all, whatever number of cards comes and goes."""


def kind_of(record: ProbeRecord) -> Kind:
    """Return under which kind a record is kept."""
    if record.result.status == "wrong_answer":
        return "wrong"
    return "judged" if record.judged else "other"


def add(connection: sqlite3.Connection, record: ProbeRecord) -> None:
    """Add a record and drop the oldest beyond the bounds; the same record twice is kept once."""
    series, kind = "/".join(series_of(record.result)), kind_of(record)
    connection.execute(
        "INSERT OR IGNORE INTO probe (uuid, series, wall_s, kind, record) VALUES (?, ?, ?, ?, ?)",
        (record.uuid, series, record.wall_s, kind, encoded(record)),
    )
    connection.execute(
        """DELETE FROM probe WHERE id IN (
            SELECT id FROM probe WHERE uuid = ? AND series = ? AND kind = ? ORDER BY id DESC LIMIT -1 OFFSET ?
        )""",
        (record.uuid, series, kind, KEEP[kind]),
    )
    connection.execute("DELETE FROM probe WHERE id <= (SELECT max(id) FROM probe) - ?", (KEEP_IN_ALL,))


def newest(connection: sqlite3.Connection, how_many: Mapping[Kind, int]) -> tuple[ProbeRecord, ...]:
    """Return so many of the newest records of each card, series and kind, oldest first by when they ended."""
    rows = connection.execute(
        """SELECT record FROM (
            SELECT record, wall_s, id, kind,
                   row_number() OVER (PARTITION BY uuid, series, kind ORDER BY wall_s DESC, id DESC) AS age
            FROM probe
        ) WHERE age <= CASE kind WHEN 'judged' THEN ? WHEN 'wrong' THEN ? ELSE ? END ORDER BY wall_s, id""",
        (how_many["judged"], how_many["wrong"], how_many["other"]),
    )
    return tuple(record for record, _ in decoded(ProbeRecord, rows))
