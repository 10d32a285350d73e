"""Signals and other threads wake the loop; handlers only note what came, the loop acts."""

import contextlib
import os
import select
import signal
from types import FrameType
from typing import Protocol


class Wakeup(Protocol):
    """What the loop waits on."""

    stopping: bool
    reload_wanted: bool

    def wait(self, timeout_s: float) -> None:
        """Return after ``timeout_s`` seconds, or sooner when something asks for attention."""


class SignalWakeup:
    """SIGTERM and SIGINT stop, SIGHUP reloads; each ends a wait at once, as does ``wake``.

    A pipe rather than an event: a handler that sets an event can meet the lock its own thread holds.
    """

    def __init__(self) -> None:
        """Make the pipe; ``install`` attaches the handlers."""
        self.stopping = False
        self.reload_wanted = False
        self._read_fd, self._write_fd = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def install(self) -> None:
        """Attach the handlers; main thread only.

        Raises:
            ValueError: Called from another thread than the main one.
        """
        signal.signal(signal.SIGTERM, self._on_stop)
        signal.signal(signal.SIGINT, self._on_stop)
        signal.signal(signal.SIGHUP, self._on_reload)
        signal.set_wakeup_fd(self._write_fd, warn_on_full_buffer=False)

    def retire(self) -> None:
        """Ignore all further signals: one that comes while the interpreter ends would end it by its number."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    def stop(self) -> None:
        """Ask the loop to end; from any thread."""
        self.stopping = True
        self.wake()

    def wake(self) -> None:
        """End the present wait; from any thread."""
        with contextlib.suppress(BlockingIOError):  # a full pipe wakes the loop as well
            os.write(self._write_fd, b"\0")

    def wait(self, timeout_s: float) -> None:
        """Sleep until woken, at most ``timeout_s`` seconds."""
        if self.stopping:
            return
        ready, _, _ = select.select([self._read_fd], [], [], max(0.0, timeout_s))
        if ready:
            os.read(self._read_fd, 4096)

    def _on_stop(self, _number: int, _frame: FrameType | None) -> None:
        self.stopping = True

    def _on_reload(self, _number: int, _frame: FrameType | None) -> None:
        self.reload_wanted = True
