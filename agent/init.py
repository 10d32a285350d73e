"""What process 1 owes the others in a container that has no init of its own: signals passed on, orphans reaped."""

import os
import signal
from typing import Final

_PASSED_ON: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def leave_init_behind() -> None:
    """As process 1 go on in a child; the parent stays an init until that child ends. Elsewhere do nothing.

    To be called before any thread is started.

    Raises:
        SystemExit: in the parent, with the child's exit code, 128 and the signal's number where one ended it.
    """
    if os.getpid() != 1:
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)  # what comes before there is anybody to pass it on to waits
    child = os.fork()
    if child:
        for number in _PASSED_ON:
            signal.signal(number, lambda caught, _frame: os.kill(child, caught))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    if child:
        raise SystemExit(_reap_until(child))


def _reap_until(child: int) -> int:
    """Reap whatever ends until ``child`` does; return its exit code."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
