"""One call of the kubelet's pod-resources API: gRPC over HTTP/2 on its Unix socket, with a deadline.

A client of its own instead of grpcio: that takes 24 MB, and threads to an agent that starts child processes.
"""

import socket
from contextlib import closing
from typing import Final

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError

from agent.clock import Clock
from agent.errors import HeatsoakError

LIST: Final = "/v1.PodResourcesLister/List"
MOST_BYTES: Final = 16 << 20
_EMPTY_MESSAGE: Final = b"\0" * 5
"""gRPC's prefix, not compressed and of length 0, with nothing behind it."""
_CHUNK_BYTES: Final = 1 << 16


class KubeletError(HeatsoakError):
    """The kubelet did not answer, or not in the form of its API."""


def list_pod_resources(path: str, clock: Clock, deadline_s: float) -> bytes:
    """Return the answer to List, a protobuf message, in at most ``deadline_s`` seconds.

    Raises:
        KubeletError: it is not there, does not answer in time, refuses, or answers nonsense.
    """
    call = _Call(clock.monotonic_s() + deadline_s, clock)
    try:
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
            call.wait_at_most(connection)
            connection.connect(path)
            call.run(connection)
    except TimeoutError as error:
        raise KubeletError(f"{path}: no answer within {deadline_s} s; is the kubelet well?") from error
    except OSError as error:
        raise KubeletError(
            f"{path}: {error.strerror or error}; it must be the kubelet's pod-resources socket"
        ) from error
    except ProtocolError as error:
        raise KubeletError(f"{path}: what answers speaks no HTTP/2: {error}") from error
    return call.message(path)


class _Call:
    """One request and what has come back of its answer."""

    def __init__(self, until_s: float, clock: Clock) -> None:
        self._until_s = until_s
        self._clock = clock
        self._http = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._headers: dict[str, str] = {}
        self._body = b""
        self._over = False

    def wait_at_most(self, connection: socket.socket) -> None:
        """Let ``connection`` wait until the deadline and no longer.

        Raises:
            TimeoutError: the deadline is over.
        """
        left_s = self._until_s - self._clock.monotonic_s()
        if left_s <= 0:
            raise TimeoutError(f"{-left_s:.3f} s late")
        connection.settimeout(left_s)

    def run(self, connection: socket.socket) -> None:
        """Ask, and read until the answer is whole or the other side leaves.

        Raises:
            OSError: the connection broke, or the deadline is over (TimeoutError).
            ProtocolError: what comes is no HTTP/2.
        """
        self._http.initiate_connection()
        names = {":method": "POST", ":scheme": "http", ":authority": "localhost", ":path": LIST}
        self._http.send_headers(1, [*names.items(), ("te", "trailers"), ("content-type", "application/grpc")])
        self._http.send_data(1, _EMPTY_MESSAGE, end_stream=True)
        while not self._over:
            self.wait_at_most(connection)
            connection.sendall(self._http.data_to_send())
            data = connection.recv(_CHUNK_BYTES)
            self._over = not data
            for event in self._http.receive_data(data):
                self._take(event)

    def _take(self, event: Event) -> None:
        if isinstance(event, ResponseReceived | TrailersReceived):
            self._headers |= {str(name): str(value) for name, value in event.headers or ()}
        elif isinstance(event, DataReceived):
            self._body += event.data or b""
            self._http.acknowledge_received_data(event.flow_controlled_length or 0, 1)
            self._over |= len(self._body) > MOST_BYTES
        elif isinstance(event, StreamEnded | StreamReset | ConnectionTerminated):
            self._over = True

    def message(self, path: str) -> bytes:
        """Return the one message of the answer.

        Raises:
            KubeletError: there is none.
        """
        status = self._headers.get("grpc-status", "none")
        if status != "0":
            told = self._headers.get("grpc-message", "") or f"HTTP status {self._headers.get(':status', 'none')}"
            raise KubeletError(f"{path}: {LIST} ended with gRPC status {status}: {told[:200]}; it must end with 0")
        compressed, length, message = self._body[:1], int.from_bytes(self._body[1:5], "big"), self._body[5:]
        if compressed != b"\0" or length != len(message):
            raise KubeletError(f"{path}: {len(self._body)} bytes that are no single plain gRPC message")
        return message
