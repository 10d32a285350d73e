"""At most one reader child at work, and at most one that cannot be killed beside it."""

from collections.abc import Callable
from typing import Final

import structlog

from agent.errors import HeatsoakError
from agent.nvml.process import Child
from agent.nvml.protocol import Command, Event, LineBuffer, decode_event, encode

REAP_WAIT_S: Final = 0.1
"""Longest wait for a killed child on the spot; mostly it is gone within a millisecond."""
STUCK_AFTER_S: Final = 0.5
"""A killed child that is still there after this long counts as stuck."""
MOST_STUCK: Final = 1

_log = structlog.get_logger("nvml")
Tap = Callable[[bytes], None]


class ReaderGoneError(HeatsoakError):
    """The reader child ended; ``ending`` says how, as ``signal 11``."""

    def __init__(self, ending: str) -> None:
        super().__init__(f"reader child ended with {ending}; expected it to run on")
        self.ending = ending


class _Killed:
    def __init__(self, child: Child, killed_s: float) -> None:
        self.child = child
        self.killed_s = killed_s
        self.told = False


class Children:
    """Starts, speaks to and buries reader children, one at a time."""

    def __init__(self, spawn: Callable[[], Child], tap: Tap | None) -> None:
        """Take how a child is started, and what sees every line it says."""
        self._spawn = spawn
        self._tap = tap
        self._child: Child | None = None
        self._lines = LineBuffer()
        self._killed: list[_Killed] = []

    @property
    def running(self) -> bool:
        """Whether a child is at work."""
        return self._child is not None

    def start(self) -> None:
        """Start a child.

        Raises:
            OSError: no process can be started.
        """
        self._child = self._spawn()
        self._lines = LineBuffer()

    def send(self, command: Command) -> bool:
        """Send a command; return whether it went out."""
        return self._child is not None and self._child.send(encode(command))

    def receive(self, timeout_s: float) -> list[Event]:
        """Wait for messages, at most ``timeout_s``.

        Raises:
            ReaderGoneError: the child has ended.
            ProtocolError: it said something that is not a message.
        """
        if self._child is None:
            return []
        chunk = self._child.receive(timeout_s)
        if chunk is None:
            return []
        if not chunk:
            self._child.gone(REAP_WAIT_S)
            raise ReaderGoneError(self._child.ending() or "closed output")
        lines = self._lines.feed(chunk)
        events = [decode_event(line) for line in lines]
        if self._tap is not None:
            for line in lines:
                self._tap(line)
        return events

    def end(self, now_s: float) -> None:
        """Kill the child at work; what does not die at once is watched from here on."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.close()
        if not child.gone(REAP_WAIT_S):
            self._killed.append(_Killed(child, now_s))

    def bury(self, now_s: float) -> None:
        """Reap what has died meanwhile; say once of each child that it is stuck."""
        for killed in list(self._killed):
            if killed.child.gone(0.0):
                self._killed.remove(killed)
                if killed.told:
                    _log.info("reader_unstuck", stuck_s=round(now_s - killed.killed_s, 1))
            elif now_s - killed.killed_s >= STUCK_AFTER_S and not killed.told:
                killed.told = True
                _log.warning("reader_stuck", stuck=self.stuck(now_s), likely_cause="it hangs in a driver call")

    def stuck(self, now_s: float) -> int:
        """Return how many killed children will not die."""
        return sum(now_s - killed.killed_s >= STUCK_AFTER_S for killed in self._killed)

    def may_start(self, now_s: float) -> bool:
        """Return whether another child may be started: none at work or dying, at most one stuck."""
        dying = len(self._killed) - self.stuck(now_s)
        return self._child is None and not dying and self.stuck(now_s) <= MOST_STUCK

    def close(self, timeout_s: float, now_s: float) -> bool:
        """End all children within ``timeout_s``; return whether they are gone."""
        self.end(now_s)
        for killed in list(self._killed):
            if killed.child.gone(timeout_s / len(self._killed)):
                self._killed.remove(killed)
        return not self._killed
