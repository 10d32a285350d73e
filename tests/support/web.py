"""A running web server for tests, and a client that shows every byte."""

import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from agent.config.listen import ListenAddress
from agent.model.snapshot import Snapshot
from exporters.board import Board
from exporters.web.listen import open_listeners
from exporters.web.server import WebServer
from exporters.web.site import build_site
from tests.support import snapshots
from tests.support.clock import FakeClock

LOOPBACK = ListenAddress("127.0.0.1", 0)
CLIENT_TIMEOUT_S = 20.0


class Site:
    """A server with what drives it."""

    def __init__(self, server: WebServer, board: Board, clock: FakeClock, listeners: Sequence[socket.socket]) -> None:
        self.server = server
        self.board = board
        self.clock = clock
        self.listeners = listeners
        self.trouble = ""
        """Why the loop stands still, to be set by tests."""

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return int(self.listeners[0].getsockname()[1])

    def publish(self, snapshot: Snapshot) -> None:
        """Publish a snapshot as one that was taken now."""
        self.board.publish(msgspec.structs.replace(snapshot, taken_monotonic_s=self.clock.monotonic_s()))

    def connect(self) -> socket.socket:
        """Return a connection to the first listener."""
        return socket.create_connection(("127.0.0.1", self.port), CLIENT_TIMEOUT_S)

    def ask(self, path: str = "/livez", method: str = "GET", **headers: str) -> "Answer":
        """Return the answer to one request over plain HTTP."""
        with self.connect() as client:
            return ask(client, path, method, **headers)


class Answer(msgspec.Struct, frozen=True):
    """An answer as it came over the wire; header names in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


@contextmanager
def running_site(
    snapshot: Snapshot | None = None,
    *,
    addresses: Sequence[ListenAddress] = (LOOPBACK,),
    listeners: Sequence[socket.socket] = (),
    config_file: str = "",
    max_connections: int = 64,
    timeout_s: float = 10.0,
    clock: FakeClock | None = None,
) -> Iterator[Site]:
    """Run a whole site with the given snapshot, on a clock that the test moves."""
    clock, board = clock or FakeClock(), Board()
    opened = list(listeners) or open_listeners(addresses)
    site: Site
    server = build_site(
        opened,
        board=board,
        clock=clock,
        version="1.2.3",
        definitions=snapshots.HOST_METRICS,
        standstill=lambda: site.trouble,
        stale_after_s=3.0,
        config_file=config_file,
        max_connections=max_connections,
        timeout_s=timeout_s,
    )
    site = Site(server, board, clock, opened)
    if snapshot is not None:
        site.publish(snapshot)
    server.start()
    try:
        yield site
    finally:
        server.stop()


def ask(client: socket.socket, path: str = "/livez", method: str = "GET", **headers: str) -> Answer:
    """Send one request on an open connection and return its answer."""
    lines = [f"{method} {path} HTTP/1.1", "Host: node"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    client.sendall("\r\n".join([*lines, "", ""]).encode())
    return read_answer(client, has_body=method != "HEAD")


def read_answer(client: socket.socket, *, has_body: bool = True) -> Answer:
    """Return the next answer on an open connection."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _more(client)
    head, _, body = data.partition(b"\r\n\r\n")
    status, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    while has_body and len(body) < int(headers["content-length"]):
        body += _more(client)
    return Answer(int(status.split()[1]), headers, body)


def _more(client: socket.socket) -> bytes:
    data = client.recv(65536)
    if not data:
        raise ConnectionError(f"closed by {client.getpeername()} before the answer was whole")
    return data


def is_closed(client: socket.socket) -> bool:
    """Wait until the server closes or resets the connection; what it still sends is read and forgotten."""
    try:
        while client.recv(65536):
            pass
    except ConnectionError:
        return True
    return True


def tls_client(site: Site, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Return a TLS connection to the site."""
    return context.wrap_socket(site.connect(), server_hostname="localhost")
