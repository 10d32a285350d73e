"""Cases 23 and 24: starting, stopping, where it listens; a state directory that is full, read-only, odd or gone."""

import contextlib
import http.client
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.agent import ROOT, AgentProcess, alive, eventually, running_agent
from tests.support.process import descendants, state_of
from tests.support.shifted_clock import ShiftedClock
from tests.support.stub_interpreter import StubInterpreter
from tests.survival.story import FAST, STOP_S, await_cards, await_ticks, ends_soon
from tests.survival.test_probes import runs


class TestCase23StartAndStop:
    """Whatever it is doing, SIGTERM ends it with 0 within 5 s and nothing is left."""

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_at_rest_and_twice(self, tmp_path: Path, number: signal.Signals) -> None:
        """A second signal changes nothing."""
        with running_agent(tmp_path, scenario="h200", environ=FAST) as agent:
            await_cards(agent)
            agent.process.send_signal(number)
            ends_soon(agent, number)

    def test_in_the_middle_of_a_tick(self, tmp_path: Path) -> None:
        """Ticks without a pause between them: the signal always comes in one."""
        environ = {"SOAK_TICK_S": "0.0001"}
        program = ("-m", "benchmarks.soak.agent")
        with running_agent(tmp_path, scenario="sixteen", environ=environ, program=program) as agent:
            await_cards(agent, 16)
            ends_soon(agent)

    @pytest.mark.parametrize("behaviour", ["hang", "hang_deaf", "double_fork"])
    def test_in_the_middle_of_a_probe(self, tmp_path: Path, behaviour: str) -> None:
        """The child ends with it, deaf to SIGTERM or not, and so does what the child left."""
        stub = StubInterpreter(tmp_path, behaviour)
        with running_agent(tmp_path, scenario="h200", environ={**FAST, **stub.settings()}) as agent:
            eventually(lambda: agent.value("heatsoak_probe_running") == 1.0, "a probe")
            ends_soon(agent)

    def test_during_an_init_that_hangs(self, tmp_path: Path) -> None:
        """The reader is in a call that does not return."""
        path = tmp_path / "hang.scenario"
        path.write_text("cards 0\nsystem nvmlInit* = HANG\n")
        with running_agent(tmp_path, scenario=path, environ=FAST) as agent:
            await_ticks(agent, 3)
            ends_soon(agent)

    @pytest.mark.system
    def test_as_process_1_of_a_container(self, tmp_path: Path) -> None:
        """No init above it: signals work, what its probes orphan is reaped."""
        stub = StubInterpreter(tmp_path, "double_fork")
        before = ("unshare", "--pid", "--fork", "--kill-child")
        environ = {**FAST, **stub.settings()}
        with running_agent(tmp_path, scenario="h200", environ=environ, before=before) as agent:
            eventually(lambda: runs(agent).get(("ok", ""), 0) >= 2, "two probes that leave a daemon")
            (init,) = agent.children()
            below = descendants(init)
            assert [pid for pid in below if state_of(pid) == "Z"] == []
            begun_s = time.monotonic()
            os.kill(init, signal.SIGTERM)
            assert agent.process.wait(STOP_S) == 0
            assert time.monotonic() - begun_s < STOP_S
            assert not any(alive(pid) for pid in below)

    def test_port_taken_is_one_line_and_exit_3(self, tmp_path: Path) -> None:
        """Within 2 s of its imports, with the address."""
        with socket.create_server(("127.0.0.1", 0)) as taken:
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            begun_s = time.monotonic()
            code, lines = _run(tmp_path, address)
        assert (code, lines) == (3, [f"heatsoak: cannot listen on {address}: Address already in use"])
        assert time.monotonic() - begun_s < 8.0

    @pytest.mark.parametrize(
        ("form", "host"),
        [("{port}", "127.0.0.1"), (":{port}", "127.0.0.1"), ("0.0.0.0:{port}", "127.0.0.1"), ("[::]:{port}", "::1")],
    )
    def test_forms_of_an_address(self, tmp_path: Path, form: str, host: str) -> None:
        """Port alone, every address, IPv4, IPv6; an empty host serves IPv4 and IPv6 alike."""
        port = _free_port()
        with running_agent(tmp_path, environ={**FAST, "HEATSOAK_WEB_LISTEN": form.format(port=port)}):
            hosts = ["127.0.0.1", "::1"] if form in ("{port}", ":{port}", "[::]:{port}") else [host]
            assert [_livez(address, port) for address in hosts] == [200] * len(hosts)

    def test_unix_socket_and_socket_from_systemd(self, tmp_path: Path) -> None:
        """A path, made anew where a dead agent left it; a listener that is handed over as descriptor 3."""
        path = tmp_path / "web.sock"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(str(path))
        with running_agent(tmp_path, environ={**FAST, "HEATSOAK_WEB_LISTEN": f"unix:{path}"}) as agent:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                client.sendall(b"GET /livez HTTP/1.0\r\nHost: node\r\n\r\n")
                assert b" 200 " in client.recv(4096)
            assert agent.stop() == 0
        assert not path.exists()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            hand_over = f'exec 3<&{listener.fileno()}; export LISTEN_FDS=1 LISTEN_PID=$$; exec "$@"'
            before = ("bash", "-c", hand_over, "bash")
            port = listener.getsockname()[1]
            with running_agent(tmp_path, environ=FAST, before=before, keep=(listener.fileno(),)) as agent:
                assert agent.url == f"http://127.0.0.1:{port}"
                assert _livez("127.0.0.1", port) == 200

    @pytest.mark.parametrize("nonsense", ["nine", "1.2.3.4.5:9", ":99999", "http://:9838", "unix:relative"])
    def test_nonsense_is_exit_2_with_the_accepted_forms(self, tmp_path: Path, nonsense: str) -> None:
        """The value, and what would be right."""
        code, lines = _run(tmp_path, nonsense)
        assert code == 2
        assert nonsense in lines[-1]
        for form in (":9838", "9838", "0.0.0.0:9838", "[::]:9838"):
            assert form in lines[-1]


class TestCase24StateAndDisk:
    """The start never fails for the state's sake, and what was kept comes back."""

    @pytest.mark.parametrize(
        "content", [b"", b"not a database", b"SQLite format 3\0" + b"\xff" * 200], ids=["empty", "foreign", "garbled"]
    )
    def test_file_that_cannot_be_used_is_replaced(self, tmp_path: Path, content: bytes) -> None:
        """Set aside where there was something in it; durable again at once."""
        file = _state_file(tmp_path)
        file.parent.mkdir()
        file.write_bytes(content)
        with running_agent(tmp_path, scenario="h200", environ=FAST) as agent:
            await_cards(agent)
            assert agent.value("heatsoak_collector_success", collector="state") == 1.0
        with contextlib.closing(sqlite3.connect(file)) as connection:
            assert connection.execute("SELECT count(*) FROM card").fetchone() == (1,)
        files = [path for path in file.parent.iterdir() if path.is_file()]
        kept = [path for path in files if path.read_bytes() == content] if content else [file]
        assert len(kept) == 1

    def test_truncated_file(self, tmp_path: Path) -> None:
        """Half of what a good agent left behind."""
        with running_agent(tmp_path, scenario="h200", environ=FAST) as agent:
            await_cards(agent)
            assert agent.stop() == 0
        file = _state_file(tmp_path)
        os.truncate(file, file.stat().st_size // 2)
        with running_agent(tmp_path, scenario="h200", environ=FAST) as agent:
            await_cards(agent)
            assert agent.value("heatsoak_collector_success", collector="state") == 1.0

    def test_newer_versions_file_is_left_alone(self, tmp_path: Path) -> None:
        """After a downgrade the agent runs in memory and says why; the file is as it was."""
        with running_agent(tmp_path, scenario="h200", environ=FAST) as agent:
            await_cards(agent)
            assert agent.stop() == 0
        with contextlib.closing(sqlite3.connect(_state_file(tmp_path))) as connection:
            connection.execute("PRAGMA user_version = 99")
        before = _state_file(tmp_path).read_bytes()
        with running_agent(tmp_path, scenario="h200", environ=FAST) as agent:
            await_cards(agent)
            assert agent.value("heatsoak_collector_success", collector="state") == 0.0
            assert agent.value("heatsoak_collector_errors_total", collector="state", reason="newer_version") == 1.0
            assert agent.stop() == 0
        assert _state_file(tmp_path).read_bytes() == before

    def test_directory_that_cannot_be_made(self, tmp_path: Path) -> None:
        """A file is in its place: in memory, with a warning; once it is gone the state is on disk by itself."""
        clock = ShiftedClock(tmp_path)
        (tmp_path / "state").write_text("in the way")
        with running_agent(tmp_path, scenario="h200", environ={**FAST, **clock.environ}) as agent:
            await_cards(agent)
            assert agent.value("heatsoak_collector_success", collector="state") == 0.0
            (tmp_path / "state").unlink()
            clock.pass_by(61.0)
            eventually(lambda: agent.value("heatsoak_collector_success", collector="state") == 1.0, "the state on disk")
            assert _state_file(tmp_path).exists()

    def test_disk_that_is_full(self, tmp_path: Path) -> None:
        """What was kept is still known; new things are kept in memory, and written once there is room."""
        with running_agent(tmp_path, scenario="h200x2", environ=FAST) as agent:
            await_cards(agent, 2)
            _command(agent, "pause", "--gpu", "0")
            assert agent.stop() == 0
        clock = ShiftedClock(tmp_path)
        no_room = ("prlimit", "--fsize=0:unlimited", "--")
        environ = {**FAST, **clock.environ}
        with running_agent(tmp_path, scenario="h200x2", environ=environ, before=no_room) as agent:
            eventually(lambda: agent.state("card", gpu="1") not in ("", "maintenance"), "the other card")
            eventually(lambda: agent.value("heatsoak_collector_success", collector="state") == 0.0, "the trouble")
            _command(agent, "pause", "--gpu", "1")
            eventually(lambda: agent.state("card", gpu="1") == "maintenance", "the second pause")
            subprocess.run(["prlimit", "--pid", str(agent.pid), "--fsize=unlimited"], check=True)
            clock.pass_by(61.0)
            eventually(lambda: agent.value("heatsoak_collector_success", collector="state") == 1.0, "the state on disk")
            agent.process.kill()
            agent.process.wait(10)
        with running_agent(tmp_path, scenario="h200x2", environ=FAST) as agent:
            eventually(lambda: agent.events("agent_started"), "the next start")
            await_ticks(agent, 3)
            with contextlib.closing(sqlite3.connect(_state_file(tmp_path))) as connection:
                (saved,) = connection.execute("SELECT data FROM document WHERE name = 'maintenance'").fetchone()
        assert saved.count(b"GPU-") == 2

    @pytest.mark.system
    @pytest.mark.parametrize("mount", ["mount -t tmpfs -o size=8k tmpfs", "mount -t tmpfs -o ro tmpfs"])
    def test_file_system_that_is_full_or_read_only(self, tmp_path: Path, mount: str) -> None:
        """A real one, mounted for the agent alone."""
        (tmp_path / "state").mkdir()
        script = f'{mount} {tmp_path / "state"} && exec "$@"'
        before = ("unshare", "--mount", "sh", "-c", script, "sh")
        with running_agent(tmp_path, scenario="h200", environ=FAST, before=before) as agent:
            await_cards(agent)
            eventually(lambda: agent.value("heatsoak_collector_success", collector="state") == 0.0, "the trouble")
            reasons = ("disk_full", "read_only", "io_error", "permission_denied", "unusable")
            errors = agent.metrics()["heatsoak_collector_errors_total"]
            told = {dict(key)["reason"] for key, count in errors.items() if count and ("collector", "state") in key}
            assert told <= set(reasons)
            assert told
            assert agent.get("/readyz")[0] == 200
            assert agent.stop() == 0

    def test_kill_9_again_and_again(self, tmp_path: Path) -> None:
        """Killed while probes write: starts each time, the history grows and never shrinks."""
        stub = StubInterpreter(tmp_path)
        kept = 0
        for _ in range(4):
            with running_agent(tmp_path, scenario="h200x2", environ={**FAST, **stub.settings()}) as agent:
                eventually(lambda: runs(agent).get(("ok", ""), 0) >= 1, "a finished probe")
                agent.process.kill()
                agent.process.wait(10)
            with contextlib.closing(sqlite3.connect(_state_file(tmp_path))) as connection:
                (count,) = connection.execute("SELECT count(*) FROM probe").fetchone()
            assert count > kept
            kept = count

    def test_kill_9_during_a_probe_leaves_nothing_for_long(self, tmp_path: Path) -> None:
        """The next start ends the child that was left running and removes what it wrote, wherever that is."""
        stub = StubInterpreter(tmp_path, "hang")
        (tmp_path / "tmp").mkdir()
        environ = {**FAST, **stub.settings(), "TMPDIR": str(tmp_path / "tmp")}
        scratch = tmp_path / "state" / "scratch"
        with running_agent(tmp_path, scenario="h200", environ=environ) as agent:
            eventually(lambda: working_in(scratch), "a child at work")
            agent.process.kill()
            agent.process.wait(10)
        (orphan,) = working_in(scratch)
        (left,) = scratch.iterdir()
        stub.behave("well")
        with running_agent(tmp_path, scenario="h200", environ=environ) as agent:
            eventually(lambda: not left.exists() and not alive(orphan), "nothing left of the first run")
            eventually(lambda: runs(agent).get(("ok", ""), 0) >= 1, "a finished probe")
            assert agent.stop() == 0
        assert [*scratch.iterdir(), *(tmp_path / "tmp").iterdir()] == []


def working_in(directory: Path) -> list[int]:
    """Return the ids of probe children that work below a directory."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink().is_relative_to(directory):
                found += [int(entry.name)] * (b"stub_probe" in (entry / "cmdline").read_bytes())
    return found


def _run(directory: Path, listen: str) -> tuple[int, list[str]]:
    """Return exit code and lines of an agent that cannot start."""
    ended = subprocess.run(
        [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(directory / "state"), "run"],
        env={"PATH": "/usr/bin:/bin", "HEATSOAK_WEB_LISTEN": listen},
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    return ended.returncode, ended.stderr.splitlines()


def _free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _livez(host: str, port: int) -> int:
    client = http.client.HTTPConnection(host, port, timeout=10)
    try:
        client.request("GET", "/livez")
        return client.getresponse().status
    finally:
        client.close()


def _state_file(directory: Path) -> Path:
    return directory / "state" / "heatsoak.db"


def _command(agent: AgentProcess, *words: str) -> None:
    command = [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(agent.state_dir), *words]
    subprocess.run(command, check=True, timeout=30, capture_output=True)
