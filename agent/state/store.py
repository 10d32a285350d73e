"""The one door to what survives a restart."""

import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeVar

import structlog

from agent.clock import Clock
from agent.errors import StateError, reason_of
from agent.model.probe import ProbeRecord
from agent.model.reference import Reference
from agent.model.snapshot import CardIdentity
from agent.model.state import STATE_TROUBLES, ExpectedCard, StateHealth, StateTrouble
from agent.state import documents, history, inventory, references
from agent.state.database import Connect, connect, copy_of, in_memory, merge, open_file, set_aside, trouble_of
from agent.state.lock import DirectoryLock
from agent.state.paths import DATABASE_NAME, LOCK_NAME
from agent.state.schema import NewerFileError, transaction

RETRY_S: Final = 60.0
"""Seconds between two attempts to get back to the file."""

_OUR_FAULTS: Final = (sqlite3.ProgrammingError, sqlite3.InterfaceError, sqlite3.IntegrityError, sqlite3.DataError)
_log = structlog.get_logger("state")
_T = TypeVar("_T")


class Store:
    """Probe history, references, expected cards and small documents, in a file or, where that fails, in memory.

    Every method may be called from any thread. None raises for the disk's sake: a write that the file
    refuses is made in memory, with all that the file held, until ``tend`` finds the file usable again.
    """

    def __init__(self, directory: Path, clock: Clock, opener: Connect = connect) -> None:
        """Open the state in ``directory``, made if missing; see ``open`` for what may go wrong."""
        self.path = directory / DATABASE_NAME
        self._clock = clock
        self._opener = opener
        self._mutex = threading.RLock()
        self._lock: DirectoryLock | None = None
        self._trouble: StateTrouble | None = None
        self._detail = ""
        self._set_aside = ""
        self._errors: Counter[str] = Counter(dict.fromkeys(STATE_TROUBLES, 0))
        self._tried_s = clock.monotonic_s()
        self._connection = in_memory()

    @classmethod
    def open(cls, directory: Path, clock: Clock, opener: Connect = connect) -> "Store":
        """Return the state in ``directory``; where the file cannot be used, in memory, with a warning.

        Raises:
            StateError: another agent uses the directory.
        """
        store = cls(directory, clock, opener)
        store._start()
        return store

    def close(self) -> None:
        """Close the file and give the directory back."""
        with self._mutex:
            self._connection.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    @property
    def health(self) -> StateHealth:
        """Return how the file fares."""
        with self._mutex:
            return StateHealth(
                durable=self._trouble is None,
                trouble=self._trouble,
                detail=self._detail,
                set_aside=self._set_aside,
                errors=MappingProxyType({trouble: self._errors[trouble] for trouble in STATE_TROUBLES}),
            )

    def tend(self) -> None:
        """Return to the file once it can be used again; to be called often, tries every ``RETRY_S`` seconds."""
        with self._mutex:
            if self._trouble is None or self._clock.monotonic_s() - self._tried_s < RETRY_S:
                return
            try:
                self._attach()
            except StateError as error:
                self._note("locked", str(error))

    def load_document(self, name: str) -> bytes | None:
        """Return a small named document; None where there is none."""
        return self._read(lambda connection: documents.load(connection, name))

    def save_document(self, name: str, data: bytes) -> None:
        """Replace a small named document."""
        self._write(lambda connection: documents.save(connection, name, data))

    def add_probe(self, record: ProbeRecord) -> None:
        """Add a finished probe; the oldest of its kind make room (see ``agent.state.history``)."""
        self._write(lambda connection: history.add(connection, record))

    def probes(self, how_many: Mapping[history.Kind, int] = history.IN_VIEW) -> tuple[ProbeRecord, ...]:
        """Return so many of the newest records of each card, series and kind, oldest first."""
        return self._read(lambda connection: history.newest(connection, how_many))

    def add_reference(self, reference: Reference) -> None:
        """Add a reference; none is ever changed, ``current_reference`` tells which one counts."""
        self._write(lambda connection: references.add(connection, reference))

    def references(self) -> tuple[Reference, ...]:
        """Return every reference of every card, oldest first."""
        return self._read(references.every)

    def see_cards(self, identities: tuple[CardIdentity, ...]) -> None:
        """Take the cards that are here now as belonging to this node; cheap where nothing is new."""
        now_s = self._clock.wall_s()
        known = {card.identity.uuid: card for card in self.inventory()}
        news = [identity for identity in identities if inventory.is_news(known.get(identity.uuid), identity, now_s)]
        if news:
            self._write(lambda connection: inventory.see(connection, news, now_s))

    def inventory(self) -> tuple[ExpectedCard, ...]:
        """Return the cards that belong to this node, by PCI address."""
        return self._read(inventory.every)

    def forget_card(self, uuid: str) -> None:
        """Remove a card, and all that belonged to it: history, references, its place in the inventory.

        Raises:
            StateError: the card is not known, or the file cannot be written, so that it would come back.
        """
        with self._mutex:
            known = [card.identity.uuid for card in self.inventory()]
            if uuid not in known:
                raise StateError(f"{uuid}: no such card in {self.path}; known are: {', '.join(known) or 'none'}")
            if self._trouble is not None:
                raise StateError(f"{uuid}: cannot be forgotten while the state is not on disk ({self._detail})")
            self._write(lambda connection: inventory.forget(connection, uuid))

    def _start(self) -> None:
        """Try the file for the first time; what cannot be opened is read as far as it can be."""
        self._attach()
        if self._trouble not in (None, "newer_version"):
            self._connection.close()
            self._connection = copy_of(self.path)

    def _attach(self) -> None:
        """Go over to the file, with all that memory holds; on failure note the trouble and stay in memory."""
        self._tried_s = self._clock.monotonic_s()
        memory = self._connection
        try:
            file = self._open_or_replace()
        except StateError:
            raise
        except (sqlite3.Error, OSError, NewerFileError) as error:
            self._note(trouble_of(error, self.path), f"{self.path}: {reason_of(error)}")
            return
        try:
            merge(memory, file)
        except sqlite3.Error as error:
            file.close()
            self._note(trouble_of(error, self.path), f"{self.path}: {reason_of(error)}")
            return
        memory.close()
        self._connection = file
        if self._trouble is not None:
            _log.info("state_durable_again", path=str(self.path))
        self._trouble, self._detail = None, ""

    def _open_or_replace(self) -> sqlite3.Connection:
        """Open the file; a damaged one is set aside for a new one with the rows that can still be read."""
        self.path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        if self._lock is None:
            self._lock = DirectoryLock(self.path.with_name(LOCK_NAME))
        if self.path.exists() and self.path.stat().st_size == 0:
            _log.warning("state_file_empty", path=str(self.path))
        try:
            return open_file(self.path, self._opener)
        except sqlite3.Error as error:
            if trouble_of(error, self.path) != "damaged":
                raise
            return self._replace(error)

    def _replace(self, error: sqlite3.Error) -> sqlite3.Connection:
        """Set the damaged file aside and begin a new one with what could be read of it."""
        self._errors["damaged"] += 1
        saved = copy_of(self.path)
        self._set_aside = str(set_aside(self.path, self._clock.wall_s()))
        _log.warning("state_file_set_aside", path=str(self.path), moved_to=self._set_aside, error=str(error))
        file = open_file(self.path, self._opener)
        merge(saved, file)
        saved.close()
        return file

    def _read(self, read: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._mutex:
            try:
                return read(self._connection)
            except sqlite3.Error as error:
                self._fall_back(error)
                return read(self._connection)

    def _write(self, write: Callable[[sqlite3.Connection], None]) -> None:
        with self._mutex:
            try:
                with transaction(self._connection):
                    write(self._connection)
            except sqlite3.Error as error:
                self._fall_back(error)
                with transaction(self._connection):
                    write(self._connection)

    def _fall_back(self, error: sqlite3.Error) -> None:
        """Go on in memory with all that the file holds.

        Raises:
            sqlite3.Error: the fault is not the disk's: a wrong statement, a closed store, or memory itself failed.
        """
        if self._trouble is not None or isinstance(error, _OUR_FAULTS):
            raise error
        self._note(trouble_of(error, self.path), f"{self.path}: {reason_of(error)}")
        self._connection.close()
        self._connection = copy_of(self.path)
        self._tried_s = self._clock.monotonic_s()

    def _note(self, trouble: StateTrouble, detail: str) -> None:
        """Count a trouble; say so when it is new."""
        self._errors[trouble] += 1
        if trouble != self._trouble:
            _log.warning("state_in_memory", trouble=trouble, detail=detail)
        self._trouble, self._detail = trouble, detail
