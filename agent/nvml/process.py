"""The reader child as a process: started, spoken to without blocking, killed, reaped within a bound."""

import os
import select
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

import agent

_CHUNK_BYTES: Final = 1 << 16
_ROOT: Final = str(Path(agent.__file__).parent.parent)


class Child(Protocol):
    """A reader child as the client sees it; tests put a fake in its place."""

    def send(self, line: bytes) -> bool:
        """Write one line at once; return whether it went out whole."""

    def receive(self, timeout_s: float) -> bytes | None:
        """Wait for output, at most ``timeout_s``; None where none came, empty where it ended."""

    def kill(self) -> None:
        """Kill it, now."""

    def gone(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` for its end; return whether it has ended and is reaped."""

    def ending(self) -> str:
        """Return how it ended, as ``exit 1`` or ``signal 9``; empty while it lives."""

    def close(self) -> None:
        """Close this side's descriptors."""


class ReaderProcess:
    """A child process that runs ``agent.nvml.reader`` in a session of its own.

    The kernel kills it when the thread that started it ends: start it from a thread that stays.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        """Start the child with this environment.

        Raises:
            OSError: no process can be started.
        """
        path = os.pathsep.join(filter(None, (_ROOT, environ.get("PYTHONPATH"))))
        self._popen = subprocess.Popen(
            [sys.executable, "-m", "agent.nvml.reader", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            cwd="/",
            env={**environ, "PYTHONPATH": path},
            start_new_session=True,
        )
        assert self._popen.stdin is not None and self._popen.stdout is not None  # noqa: S101, PT018 - both are pipes
        self._in = self._popen.stdin.fileno()
        self._out = self._popen.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._popen.pid

    def send(self, line: bytes) -> bool:
        """Write one line at once; return whether it went out whole."""
        try:
            return os.write(self._in, line) == len(line)
        except OSError:  # full or broken: its end is seen in receive
            return False

    def receive(self, timeout_s: float) -> bytes | None:
        """Wait for output, at most ``timeout_s``; None where none came, empty where it ended."""
        if not self._poll.poll(max(0, round(timeout_s * 1000))):
            return None
        try:
            return os.read(self._out, _CHUNK_BYTES)
        except BlockingIOError:
            return None

    def kill(self) -> None:
        """Kill it, now."""
        self._popen.kill()

    def gone(self, timeout_s: float) -> bool:
        """Wait at most ``timeout_s`` for its end; return whether it has ended and is reaped."""
        try:
            self._popen.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def ending(self) -> str:
        """Return how it ended, as ``exit 1`` or ``signal 9``; empty while it lives."""
        code = self._popen.returncode
        if code is None:
            return ""
        return f"exit {code}" if code >= 0 else f"signal {-code}"

    def close(self) -> None:
        """Close this side's descriptors."""
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                pipe.close()
