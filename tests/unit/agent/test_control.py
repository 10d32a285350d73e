"""The operator's socket: who may speak, what is answered, what goes wrong."""

import json
import socket
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.control import ControlError, ControlServer, ask


def _echo(request: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"heard": request["word"]}


def _refuse(request: Mapping[str, Any]) -> Mapping[str, Any]:
    raise ControlError(f"word is {request['command']!r}; right would be a word")


def _break(_request: Mapping[str, Any]) -> Mapping[str, Any]:
    raise ZeroDivisionError


@pytest.fixture
def path(tmp_path: Path) -> Iterator[Path]:
    """Serve a socket."""
    server = ControlServer(tmp_path / "control.sock", {"echo": _echo, "refuse": _refuse, "break": _break})
    server.start()
    yield tmp_path / "control.sock"
    server.close()


def test_a_command_is_answered(path: Path) -> None:
    """The handler's answer comes back."""
    assert ask(path, {"command": "echo", "word": "hello"}) == {"ok": True, "heard": "hello"}


def test_only_the_owner_may_open_the_socket(path: Path) -> None:
    """Mode 0600: other users cannot even connect."""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_refusal_reaches_the_caller_with_its_reason(path: Path) -> None:
    """One line: the socket, then what the handler said."""
    with pytest.raises(ControlError, match="right would be a word"):
        ask(path, {"command": "refuse"})


def test_a_fault_in_one_command_does_not_end_the_service(path: Path) -> None:
    """The next command is answered as ever."""
    with pytest.raises(ControlError, match="internal error: ZeroDivisionError"):
        ask(path, {"command": "break"})
    assert ask(path, {"command": "echo", "word": "still here"})["heard"] == "still here"


@pytest.mark.parametrize(
    "line", [b"", b"nonsense\n", b"[]\n", b'{"command": "fly"}\n', b'{"command": []}\n', b"[" * 70000, b"\xff\n"]
)
def test_nonsense_is_answered_with_what_would_be_right(path: Path, line: bytes) -> None:
    """Whatever comes in, one line goes out that names the commands."""
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(line)
        client.shutdown(socket.SHUT_WR)
        answer = json.loads(client.makefile().readline())
    assert answer["ok"] is False
    assert "break, echo, refuse" in answer["error"]


def test_a_client_that_leaves_costs_nothing(path: Path) -> None:
    """Connected and gone: the next one is served."""
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
    assert ask(path, {"command": "echo", "word": "x"})["ok"] is True


def test_no_agent_is_one_clear_line(tmp_path: Path) -> None:
    """The path is named, and how to start an agent."""
    with pytest.raises(ControlError, match=r"no agent answers here.*heatsoak run"):
        ask(tmp_path / "control.sock", {"command": "pause"})


def test_a_socket_left_by_a_dead_agent_is_replaced(tmp_path: Path) -> None:
    """The file of a killed agent does not keep the next from serving."""
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "control.sock"))
    left.close()
    server = ControlServer(tmp_path / "control.sock", {"echo": _echo})
    server.start()
    try:
        assert ask(tmp_path / "control.sock", {"command": "echo", "word": "x"})["ok"] is True
    finally:
        server.close()
    assert not (tmp_path / "control.sock").exists()


def test_a_path_that_cannot_be_bound_leaves_the_agent_without_the_socket(tmp_path: Path) -> None:
    """A path longer than the kernel takes is logged; starting and closing go on."""
    server = ControlServer(tmp_path / ("x" * 120), {})
    server.start()
    server.close()
    assert not list(tmp_path.iterdir())
