"""Recordings of a reader's answers: written for bug reports and demos, and played back as another source.

The format is described in docs/recording.md.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from agent.clock import Clock
from agent.config.settings import NvmlSettings
from agent.errors import EXIT_USAGE, HeatsoakError
from agent.model.snapshot import Card, NvmlHealth
from agent.nvml import advice
from agent.nvml.client import ReaderClient
from agent.nvml.health import HealthLog
from agent.nvml.process import Child, ReaderProcess
from agent.nvml.protocol import CardFound, Done, Event, Failed, Hello, Ready, Values, decode_event, encode
from agent.nvml.source import GpuReading
from agent.nvml.store import CardStore

FORMAT_VERSION: Final = 1
_TICK_S: Final = 1.0


class RecordingError(HeatsoakError):
    """A recording that cannot be written or played."""

    exit_code = EXIT_USAGE


class Header(msgspec.Struct, frozen=True):
    """First line of a recording."""

    heatsoak_recording: int
    wall_s: float
    masked: bool


class Entry(msgspec.Struct, frozen=True):
    """Any other line: what the reader said, and how many seconds after the start."""

    t: float
    m: Event


class Recorder:
    """Writes each line that a reader says, with its time, as one line."""

    def __init__(self, stream: BinaryIO, clock: Clock, *, mask: bool) -> None:
        """Write the header; with ``mask`` UUIDs and serial numbers are replaced by made-up ones."""
        self._stream = stream
        self._clock = clock
        self._mask = mask
        self._start_s = clock.monotonic_s()
        self._write(msgspec.json.encode(Header(FORMAT_VERSION, clock.wall_s(), mask)))

    def tap(self, line: bytes) -> None:
        """Write one line of the reader."""
        event = decode_event(line)
        if self._mask and isinstance(event, CardFound) and not event.lost:
            event = msgspec.structs.replace(event, uuid=masked_uuid(event.card), serial="")
        offset_s = self._clock.monotonic_s() - self._start_s
        self._write(b'{"t":%.3f,"m":%s}' % (offset_s, encode(event).rstrip()))

    def _write(self, line: bytes) -> None:
        self._stream.write(line + b"\n")
        self._stream.flush()


def masked_uuid(index: int) -> str:
    """Return the UUID that stands for card ``index`` in a masked recording."""
    return f"GPU-00000000-0000-4000-8000-{index + 1:012d}"


def record(
    path: Path,
    settings: NvmlSettings,
    clock: Clock,
    stop: threading.Event,
    duration_s: float,
    *,
    mask: bool = True,
    spawn: Callable[[], Child] = ReaderProcess,
) -> GpuReading:
    """Record the cards to ``path`` for ``duration_s`` seconds or until ``stop``; return the last reading.

    Where that is cut short before a card answered, no file is left.

    Raises:
        RecordingError: the file cannot be written, or is there already.
    """
    try:
        with path.open("xb") as stream, contextlib.ExitStack() as unless_done:
            unless_done.callback(discard_without_card, path)
            reading = _record(stream, settings, clock, stop, duration_s, mask=mask, spawn=spawn)
            unless_done.pop_all()
            return reading
    except FileExistsError as error:
        raise RecordingError(f"{path}: is there already; name another file") from error
    except OSError as error:
        raise RecordingError(f"{path}: cannot be written: {error.strerror}; expected a place for a file") from error


def discard_without_card(path: Path) -> bool:
    """Remove a recording that holds no card, so that it does not stand in the way of the next; return whether."""
    try:
        found = any(isinstance(entry.m, CardFound) for entry in read_recording(path))
    except RecordingError:
        found = False
    if not found:
        path.unlink(missing_ok=True)
    return not found


def _record(
    stream: BinaryIO,
    settings: NvmlSettings,
    clock: Clock,
    stop: threading.Event,
    duration_s: float,
    *,
    mask: bool,
    spawn: Callable[[], Child],
) -> GpuReading:
    client = ReaderClient(settings, clock, spawn, Recorder(stream, clock, mask=mask).tap)
    try:
        return _run(client, clock, stop, duration_s)
    finally:
        client.close(_TICK_S)


def _run(client: ReaderClient, clock: Clock, stop: threading.Event, duration_s: float) -> GpuReading:
    end_s = clock.monotonic_s() + duration_s
    while True:
        start_s = clock.monotonic_s()
        client.begin_tick()
        reading = client.end_tick(start_s + _TICK_S)
        rest_s = start_s + _TICK_S - clock.monotonic_s()
        if clock.monotonic_s() + rest_s >= end_s or clock.wait(stop, rest_s):
            return reading


def read_recording(path: Path) -> Iterator[Entry]:
    """Yield a recording's entries in their order.

    Raises:
        RecordingError: the file cannot be read, or a line is not what the format says.
    """
    try:
        with path.open("rb") as stream:
            _check_header(path, stream.readline())
            for number, line in enumerate(stream, start=2):
                yield _entry(path, number, line)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror}; expected a recording") from error


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = msgspec.json.decode(line, type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RecordingError(f"{path}:1: {error}; expected the header of a heatsoak recording") from None
    if header.heatsoak_recording != FORMAT_VERSION:
        raise RecordingError(f"{path}:1: format {header.heatsoak_recording}; expected format {FORMAT_VERSION}")


_entry_decoder: Final = msgspec.json.Decoder(Entry)


def _entry(path: Path, number: int, line: bytes) -> Entry:
    try:
        return _entry_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RecordingError(f"{path}:{number}: {error}; expected one recorded message") from None


class ReplaySource:
    """Plays a recording as if it came from a reader, and begins again at its end; see ``CardSource``."""

    def __init__(self, path: Path, clock: Clock, speed: float = 1.0) -> None:
        """Take the file and how much faster than life it is played.

        Raises:
            RecordingError: the file cannot be read, or holds no message.
        """
        self._path = path
        self._clock = clock
        self._speed = speed
        self._entries = read_recording(path)
        self._next = self._first()
        self._begun_s = clock.monotonic_s()
        self._offset_s = 0.0
        self._store = CardStore()
        self._health = HealthLog()
        self._fault = advice.STARTING
        self._refused: list[str] = []
        self._paused: frozenset[str] = frozenset()
        self._lock = threading.Lock()

    def begin_tick(self) -> None:
        """Do nothing: the answers stand in the file."""

    def end_tick(self, until_monotonic_s: float) -> GpuReading:  # noqa: ARG002 - nothing to wait for
        """Return the cards as they were at this moment of the recording."""
        with self._lock:
            self._health.asked()
            now_s = self._play()
            fault = advice.PAUSED if self._store.all_in(self._paused) else self._fault
            self._health.tell(fault, self._store.driver.driver)
            cards = self._store.cards(now_s, {}) if fault in ("", advice.PAUSED) else ()
            return GpuReading(
                cards=tuple(self._masked(card) for card in cards),
                nvml=NvmlHealth(
                    up=not fault,
                    error=fault,
                    advice=advice.advice(fault),
                    driver=self._store.driver.driver,
                    nvml=self._store.driver.nvml,
                    dropped=dict(self._store.dropped),
                    recording=self._path.name,
                ),
                health=self._health.collector(),
            )

    def burst(self, uuid: str, timeout_s: float) -> Card | None:  # noqa: ARG002 - nothing to wait for
        """Return one card as it was at this moment of the recording."""
        with self._lock:
            now_s = self._play()
            indices = self._store.indices({uuid})
            return self._masked(self._store.card(indices.pop(), now_s)) if indices else None

    def pause(self, uuids: Collection[str]) -> None:
        """Serve no values of these cards."""
        with self._lock:
            self._paused |= frozenset(uuids)

    def resume(self, uuids: Collection[str]) -> None:
        """Serve values of these cards again."""
        with self._lock:
            self._paused -= frozenset(uuids)

    def close(self, timeout_s: float) -> None:  # noqa: ARG002 - nothing to wait for
        """Close the file."""
        self._entries = iter(())

    def _masked(self, card: Card) -> Card:
        if card.identity.uuid in self._paused:
            return msgspec.structs.replace(card, values={}, processes=None)
        return card

    def _first(self) -> Entry:
        entry = next(self._entries, None)
        if entry is None:
            raise RecordingError(f"{self._path}: holds no message after its header; expected at least one")
        return entry

    def _play(self) -> float:
        """Take in what is due; return the moment in the recording, counted on over its repetitions."""
        now_s = (self._clock.monotonic_s() - self._begun_s) * self._speed
        while self._next.t + self._offset_s <= now_s:
            self._take_in(self._next.m, self._next.t + self._offset_s)
            last_s = self._next.t
            following = next(self._entries, None)
            if following is None:
                self._entries = read_recording(self._path)
                following = self._first()
                self._offset_s += last_s - following.t + _TICK_S
            self._next = following
        return now_s

    def _take_in(self, event: Event, taken_s: float) -> None:
        if isinstance(event, Hello):
            self._store.begin(event, ())
        elif isinstance(event, CardFound):
            self._store.found(event)
        elif isinstance(event, Ready):
            self._store.settle()
        elif isinstance(event, Values):
            self._store.answered(event, taken_s, self._clock.wall_s())
            self._refused.append("" if event.lost else event.refused)
        elif isinstance(event, Done):
            self._fault = self._refused[0] if self._refused and all(self._refused) else ""
            self._refused = []
            self._health.swept(0.0, self._clock.wall_s())
        elif isinstance(event, Failed):
            self._fault = event.error
