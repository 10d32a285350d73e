"""Process 1 leaves an init behind; any other process does not."""

import os
import signal
import subprocess
import sys

import pytest

from agent.init import leave_init_behind
from tests.support.agent import eventually
from tests.support.process import children

_SCRIPT = """
import os, signal, sys, time
from agent.init import leave_init_behind
leave_init_behind()
assert os.getpid() != 1
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(0.2)  # an orphan by now
    os._exit(0)
os.wait()
signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print("ready", flush=True)
time.sleep(60)
"""


def test_elsewhere_nothing_happens() -> None:
    """The same process goes on."""
    before = os.getpid()
    leave_init_behind()
    assert os.getpid() == before


@pytest.mark.system
def test_signals_are_passed_on_and_orphans_reaped() -> None:
    """In a pid namespace of its own: the child's exit code is that of the init, and no zombie stays."""
    command = ["unshare", "--pid", "--fork", "--kill-child", sys.executable, "-c", _SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        (init,) = children(process.pid)
        eventually(lambda: len(children(init)) == 1, "the end and the burial of the orphan")
        os.kill(init, signal.SIGTERM)
        assert process.wait(10) == 7
