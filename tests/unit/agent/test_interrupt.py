"""Signals end work in good order, and are told apart."""

import signal
import threading

import pytest

from agent.errors import ConfigError
from agent.interrupt import SignalledError, interruptible


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_stops_the_work_and_gives_the_exit_code(number: signal.Signals, code: int) -> None:
    """The work is asked to stop and ends by itself; what it made of it is no result."""
    stopped = threading.Event()

    def work() -> str:
        signal.raise_signal(number)
        assert stopped.wait(10.0)
        return "half a result"

    with pytest.raises(SignalledError, match="interrupted") as raised:
        interruptible(work, stopped.set)
    assert raised.value.exit_code == code


def test_what_the_work_raises_once_stopped_is_not_the_news() -> None:
    """That no card was found in time is the signal's doing."""
    stopped = threading.Event()

    def work() -> None:
        signal.raise_signal(signal.SIGINT)
        stopped.wait(10.0)
        raise ConfigError(["no card is known here"])

    with pytest.raises(SignalledError):
        interruptible(work, stopped.set)


def test_without_a_signal_the_work_speaks() -> None:
    """Its result, or what it raises; the handlers of before are back."""
    before = signal.getsignal(signal.SIGINT)

    def fail() -> None:
        raise ConfigError(["no card is known here"])

    assert interruptible(lambda: 7, lambda: None) == 7
    with pytest.raises(ConfigError):
        interruptible(fail, lambda: None)
    assert signal.getsignal(signal.SIGINT) is before
