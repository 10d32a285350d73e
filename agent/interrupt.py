"""Work on the command line that SIGINT and SIGTERM end in good order: children too, and with a word."""

import contextlib
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Final, TypeVar

from agent.errors import HeatsoakError

LOOK_S: Final = 0.2
"""How often a signal is looked for, in seconds."""
_Work = TypeVar("_Work")


class SignalledError(HeatsoakError):
    """A signal ended the work; the exit code is the shell's for it, 130 or 143."""

    def __init__(self, number: int) -> None:
        """Take the signal's number."""
        super().__init__("interrupted")
        self.exit_code = 128 + number


@contextlib.contextmanager
def signals_noted() -> Iterator[list[int]]:
    """Note SIGINT and SIGTERM by their numbers while the body runs, instead of dying of them."""
    noted: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _frame: noted.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield noted
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def watched(work: Callable[[], _Work], noted: list[int], stop: Callable[[], None]) -> _Work:
    """Do ``work`` in a thread and return what it returns; a signal stops it, and it still ends by itself."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        future = pool.submit(work)
        while not future.done():
            wait([future], timeout=LOOK_S)
            if noted:
                stop()
        return future.result()


def interruptible(work: Callable[[], _Work], stop: Callable[[], None]) -> _Work:
    """Do ``work`` in a thread and return what it returns, unless a signal comes: that calls ``stop``.

    Raises:
        SignalledError: A signal came; whatever the work made of it is no result.
    """
    with signals_noted() as noted:
        try:
            return watched(work, noted, stop)
        finally:
            if noted:
                raise SignalledError(noted[0])
