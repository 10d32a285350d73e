"""Since when something has been so: transition times that outlive a restart of the agent."""

from collections.abc import Collection
from typing import Final, Protocol

import msgspec

RESTORE_S: Final = 900.0
"""How long after a start a remembered finding may take to be seen again and keep its old time."""
SAVE_EVERY_S: Final = 10.0

Key = tuple[str, str, str]
"""Subject (a card's UUID or ``node``), rule, cause."""


class Documents(Protocol):
    """Keeps small named documents; neither call raises, a lost write is the keeper's to count."""

    def load_document(self, name: str) -> bytes | None:
        """Return the document, None where there is none."""

    def save_document(self, name: str, data: bytes) -> None:
        """Replace the document."""


class Entry(msgspec.Struct, frozen=True):
    """One thing that was so, as remembered over a restart."""

    subject: str
    rule: str
    cause: str
    since_wall_s: float


class SinceTable:
    """The wall time at which each thing began; what stops is forgotten, what returns begins anew."""

    def __init__(self, documents: Documents, name: str, now_monotonic_s: float) -> None:
        self._documents = documents
        self._name = name
        self._since: dict[Key, float] = {}
        self._restored = _load(documents, name)
        self._restore_until_s = now_monotonic_s + RESTORE_S
        self._saved_s = now_monotonic_s - SAVE_EVERY_S
        self._changed = False

    def update(self, present: Collection[Key], now_monotonic_s: float, now_wall_s: float) -> tuple[set[Key], set[Key]]:
        """Take what is so now; return what began and what ended since the last call."""
        began = {key for key in present if key not in self._since}
        ended = self._since.keys() - present
        for key in began:
            self._since[key] = self._restored.pop(key, now_wall_s)
        for key in ended:
            del self._since[key]
        if self._restored and now_monotonic_s > self._restore_until_s:
            self._restored.clear()
            self._changed = True
        self._changed = self._changed or bool(began or ended)
        if self._changed and now_monotonic_s - self._saved_s >= SAVE_EVERY_S:
            self._save(now_monotonic_s)
        return began, ended

    def __getitem__(self, key: Key) -> float:
        """Return the wall time at which ``key`` began."""
        return self._since[key]

    def _save(self, now_monotonic_s: float) -> None:
        """Write what is so, and what a restart has not yet seen again."""
        entries = [Entry(*key, since) for key, since in sorted((self._restored | self._since).items())]
        self._documents.save_document(self._name, msgspec.json.encode(entries))
        self._saved_s = now_monotonic_s
        self._changed = False


def _load(documents: Documents, name: str) -> dict[Key, float]:
    """Return what was remembered; nothing where the document is missing or not ours."""
    data = documents.load_document(name)
    if data is None:
        return {}
    try:
        entries = msgspec.json.decode(data, type=list[Entry])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return {}
    return {(entry.subject, entry.rule, entry.cause): entry.since_wall_s for entry in entries}
