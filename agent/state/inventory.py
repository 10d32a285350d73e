"""Which cards belong to this node."""

import sqlite3
from collections.abc import Iterable
from typing import Final

from agent.model.snapshot import CardIdentity
from agent.model.state import ExpectedCard
from agent.state.rows import decoded, encoded

SEEN_EVERY_S: Final = 3600.0
"""How old the time of last sight may be before it is written anew."""


def is_news(known: ExpectedCard | None, identity: CardIdentity, now_wall_s: float) -> bool:
    """Return whether seeing ``identity`` now is worth a write."""
    if known is None or known.identity != identity:
        return True
    return abs(now_wall_s - known.last_seen_wall_s) >= SEEN_EVERY_S


def see(connection: sqlite3.Connection, identities: Iterable[CardIdentity], now_wall_s: float) -> None:
    """Take the cards as belonging here, seen now."""
    connection.executemany(
        """INSERT INTO card VALUES (?, ?, ?, ?) ON CONFLICT (uuid) DO UPDATE
        SET record = excluded.record, last_seen_wall_s = excluded.last_seen_wall_s""",
        [(card.uuid, encoded(card), now_wall_s, now_wall_s) for card in identities],
    )


def every(connection: sqlite3.Connection) -> tuple[ExpectedCard, ...]:
    """Return the expected cards by PCI address; a row of unknown form is left out with a warning."""
    rows = connection.execute("SELECT record, first_seen_wall_s, last_seen_wall_s FROM card")
    found = [ExpectedCard(identity, float(row[1]), float(row[2])) for identity, row in decoded(CardIdentity, rows)]
    return tuple(sorted(found, key=lambda card: (card.identity.pci_bus_id, card.identity.uuid)))


def forget(connection: sqlite3.Connection, uuid: str) -> None:
    """Remove a card and all that belonged to it."""
    connection.execute("DELETE FROM card WHERE uuid = ?", (uuid,))
    connection.execute("DELETE FROM reference WHERE uuid = ?", (uuid,))
    connection.execute("DELETE FROM probe WHERE uuid = ?", (uuid,))
