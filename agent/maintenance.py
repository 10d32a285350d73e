"""Cards that an operator has paused, until when, also over a restart of the agent."""

import threading
from collections.abc import Collection
from typing import Final, Protocol

import msgspec
import structlog

from agent.clock import Clock

_DOCUMENT: Final = "maintenance"
_log = structlog.get_logger("maintenance")


class Documents(Protocol):
    """Keeps small named documents; neither call raises."""

    def load_document(self, name: str) -> bytes | None:
        """Return the document, None where there is none."""

    def save_document(self, name: str, data: bytes) -> None:
        """Replace the document."""


class _Saved(msgspec.Struct, frozen=True):
    uuid: str
    until_wall_s: float | None


class Maintenance:
    """Which cards are paused; may be asked and changed from any thread."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        """Take up the pauses that a former agent left and that have not run out."""
        self._documents = documents
        self._clock = clock
        self._lock = threading.Lock()
        self._until_s: dict[str, float] = self._load()

    def pause(self, uuids: Collection[str], for_s: float | None) -> None:
        """Pause cards for so many seconds; without a bound where None."""
        until_s = float("inf") if for_s is None else self._clock.monotonic_s() + for_s
        with self._lock:
            self._until_s |= dict.fromkeys(uuids, until_s)
            self._save()
        _log.info("cards_paused", uuids=sorted(uuids), for_s=for_s)

    def resume(self, uuids: Collection[str]) -> None:
        """Take cards out of maintenance; those that are not paused stay as they are."""
        with self._lock:
            for uuid in uuids:
                self._until_s.pop(uuid, None)
            self._save()
        _log.info("cards_resumed", uuids=sorted(uuids))

    def paused(self) -> frozenset[str]:
        """Return the UUIDs of the cards that are paused now; pauses that ran out end here."""
        with self._lock:
            now_s = self._clock.monotonic_s()
            ended = [uuid for uuid, until_s in self._until_s.items() if until_s <= now_s]
            for uuid in ended:
                del self._until_s[uuid]
            if ended:
                self._save()
                _log.info("pause_ran_out", uuids=sorted(ended))
            return frozenset(self._until_s)

    def _save(self) -> None:
        to_wall_s = self._clock.wall_s() - self._clock.monotonic_s()
        rows = [
            _Saved(uuid, None if until_s == float("inf") else until_s + to_wall_s)
            for uuid, until_s in self._until_s.items()
        ]
        self._documents.save_document(_DOCUMENT, msgspec.json.encode(rows))

    def _load(self) -> dict[str, float]:
        data = self._documents.load_document(_DOCUMENT)
        if data is None:
            return {}
        try:
            rows = msgspec.json.decode(data, type=list[_Saved])
        except msgspec.MsgspecError as error:
            _log.warning("maintenance_unreadable", error=str(error))
            return {}
        to_monotonic_s = self._clock.monotonic_s() - self._clock.wall_s()
        return {
            row.uuid: float("inf") if row.until_wall_s is None else row.until_wall_s + to_monotonic_s for row in rows
        }
