"""Least privilege: a user of its own, no capability; what is missing is said, the rest works."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agent import ROOT, eventually, running_agent
from tests.support.fakenvml import fake_env
from tests.support.stub_interpreter import StubInterpreter
from tests.survival.story import FAST, Story, await_cards, check_metrics, complaints
from tests.survival.test_probes import runs

NOBODY = 65534
_SETPRIV = (
    "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
    "--no-new-privs",
)  # fmt: skip
_OPEN_UP = """
mount --bind {python} /mnt && mount -t tmpfs -o mode=755 tmpfs {closed} && mkdir -p {python} &&
mount --move /mnt {python} && exec "$@"
"""


def unprivileged() -> tuple[str, ...]:
    """Return the command that starts another as nobody, without a capability and unable to gain one.

    Where this Python lives in a folder that only root may enter, nobody sees that folder with nothing in it
    but Python, in a mount namespace of its own.
    """
    python = Path(sys.base_prefix)
    closed = [folder for folder in (python, *python.parents) if not folder.stat().st_mode & 0o001]
    if not closed:
        return _SETPRIV
    script = _OPEN_UP.format(python=shlex.quote(str(python)), closed=shlex.quote(str(closed[-1])))
    return ("unshare", "--mount", "sh", "-c", script, "sh", *_SETPRIV)


@pytest.mark.system
class TestLeastPrivilege:
    """The agent as nobody, without a capability, and unable to gain one."""

    def test_cards_host_and_probes_work(self, open_path: Path) -> None:
        """Readings, events, host, state, probes, operator's socket: nothing is missing, nothing complains."""
        story, stub = Story(open_path, "h200"), StubInterpreter(open_path)
        (open_path / "state").mkdir(exist_ok=True)
        os.chown(open_path / "state", NOBODY, NOBODY)
        with running_agent(
            open_path, scenario=story.path, environ={**FAST, **stub.settings()}, before=unprivileged()
        ) as agent:
            await_cards(agent)
            status = Path(f"/proc/{agent.pid}/status").read_text()
            assert "CapEff:\t0000000000000000" in status
            assert "CapBnd:\t0000000000000000" in status
            assert f"Uid:\t{NOBODY}" in status
            eventually(lambda: runs(agent).get(("ok", ""), 0) >= 1, "a probe")
            story.tell("event 0 xid 31")
            eventually(lambda: agent.value("heatsoak_gpu_xid_events_total", gpu="0") == 1.0, "an XID, by NVML's events")
            success = agent.metrics()["heatsoak_collector_success"]
            assert {key: value for key, value in success.items() if value != 1.0} == {}
            assert [event for event in complaints(agent) if event != "gpu_xid"] == []
            check_metrics(agent.get("/metrics")[1])
            assert agent.stop() == 0

    def test_processes_of_other_users_are_seen_in_part(self, open_path: Path) -> None:
        """Somebody else's training process: the card is left alone; what cannot be read of it is not made up."""
        (open_path / "state").mkdir(exist_ok=True)
        os.chown(open_path / "state", NOBODY, NOBODY)
        stub = StubInterpreter(open_path)
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as tenant:
            story = Story(open_path, "h200", f"process 0 compute pid {tenant.pid} memory 512MiB")
            environ = {**FAST, **stub.settings()}
            with running_agent(open_path, scenario=story.path, environ=environ, before=unprivileged()) as agent:
                await_cards(agent)
                eventually(lambda: runs(agent).get(("skipped", "foreign_process"), 0) >= 1, "the guest's manners")
                assert agent.value("heatsoak_gpu_processes", gpu="0") == 1.0
                assert agent.get("/livez")[0] == 200
                assert complaints(agent) == []
            tenant.kill()

    def test_doctor_says_what_is_missing(self, open_path: Path) -> None:
        """Run as nobody it ends, with a verdict and without a traceback."""
        environ = {**fake_env("h200"), "HOME": str(open_path)}
        command = [*unprivileged(), sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(open_path), "doctor"]
        ended = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False, cwd=ROOT)
        assert "Traceback" not in ended.stdout + ended.stderr
        assert ended.stdout


@pytest.fixture
def open_path(tmp_path: Path) -> Path:
    """Return a folder that any user may enter and write to; those above it may be entered while the test runs."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.owner() != "root" or folder.stat().st_mode & 0o001:
            continue
        folder.chmod(folder.stat().st_mode | 0o011)
    tmp_path.chmod(0o777)
    return tmp_path
