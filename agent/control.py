"""The local Unix socket on which an operator changes the running agent; nothing does so over HTTP.

One JSON object a line asks, one answers: ``{"command": "pause", "gpus": ["0"], "for_s": 7200}`` is
answered by ``{"ok": true, …}`` or ``{"ok": false, "error": "…"}``. The agent's own user and root may ask.
``addresses`` alone changes nothing: it tells where the agent answers over HTTP.
"""

import json
import os
import socket
import struct
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import structlog

from agent.errors import EXIT_USAGE, HeatsoakError

_log = structlog.get_logger("control")
_MOST_BYTES = 65536
_TIMEOUT_S = 5.0

Handler = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class ControlError(HeatsoakError):
    """The agent refused a command, or none answers on the socket."""

    exit_code = EXIT_USAGE


class ControlServer:
    """Answers one client after the other in one thread."""

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        """Serve ``handlers`` by command name on the Unix socket ``path``."""
        self._path = path
        self._handlers = handlers
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Bind the socket, replacing one that a dead agent left, and serve; a path that cannot be bound is logged."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(missing_ok=True)
            listener.bind(str(self._path))
            self._path.chmod(0o600)
            listener.listen(4)
        except OSError as error:
            listener.close()
            _log.warning("control_socket_unavailable", path=str(self._path), error=str(error))
            return
        self._socket = listener
        self._thread = threading.Thread(target=self._serve, args=(listener,), name="control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop serving and remove the socket."""
        if self._socket is None or self._thread is None:
            return
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(timeout=1.0)
        self._path.unlink(missing_ok=True)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            with client:
                client.settimeout(_TIMEOUT_S)
                try:
                    client.sendall(json.dumps(self._answer(client)).encode() + b"\n")
                except OSError as error:
                    _log.debug("control_client_left", error=str(error))

    def _answer(self, client: socket.socket) -> Mapping[str, Any]:
        if _peer_uid(client) not in (0, os.geteuid()):
            return {"ok": False, "error": "only the agent's own user and root may change the agent"}
        try:
            request = json.loads(_read_line(client))
            handler = self._handlers[request["command"]]
        except (ValueError, TypeError, KeyError, RecursionError):
            known = ", ".join(sorted(self._handlers))
            return {"ok": False, "error": f"expected one JSON object a line with a command out of: {known}"}
        try:
            return {"ok": True, **handler(request)}
        except HeatsoakError as error:
            return {"ok": False, "error": str(error)}
        except Exception as error:  # noqa: BLE001 - a fault in one command must not end the socket's thread
            _log.exception("control_command_failed", command=str(request["command"]))
            return {"ok": False, "error": f"internal error: {type(error).__name__}"}


def ask(path: Path, request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Send one command to the agent that serves ``path`` and return its answer.

    Raises:
        ControlError: No agent serves the socket, or it refused the command.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(_TIMEOUT_S)
            client.connect(str(path))
            client.sendall(json.dumps(request).encode() + b"\n")
            answer = json.loads(_read_line(client))
    except (OSError, ValueError) as error:
        raise ControlError(
            f"{path}: no agent answers here ({error}); start it with `heatsoak run`, "
            "or name its state directory with --state-dir"
        ) from error
    if not answer.get("ok"):
        raise ControlError(f"{path}: {answer.get('error', 'the agent refused without a reason')}")
    return dict(answer)


def _read_line(client: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n") and len(line) < _MOST_BYTES:
        chunk = client.recv(4096)
        if not chunk:
            break
        line += chunk
    return line


def _peer_uid(client: socket.socket) -> int:
    credentials = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", credentials)
    return int(uid)
