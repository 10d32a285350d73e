"""The web server: one thread with an event loop, so that a client that waits costs memory and nothing else.

No client can hold a thread: reading, writing and TLS handshakes of all connections wait side by side, each
under its own deadline. Where all places are taken, the connection that has kept us waiting longest goes.
"""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

import structlog

from exporters.web.config import ConfigSource
from exporters.web.connection import Connection, Handler, TooSlow
from exporters.web.listen import close_listener, describe
from exporters.web.stats import CutReason, WebStats

_READ_LIMIT_BYTES: Final = 64 * 1024
_ACCEPT_PAUSE_S: Final = 0.1
_GRACE_S: Final = 0.5

_log = structlog.get_logger("web")


class _Guest:
    """One open connection, and since when it has been waiting for its client."""

    def __init__(self, client: socket.socket, since_s: float) -> None:
        self._client: socket.socket | None = client
        self.since_s = since_s

    def wait_from(self, now_s: float) -> None:
        """Note that the client has done its part and a new wait begins."""
        self.since_s = now_s

    def take(self) -> socket.socket:
        """Hand the socket over to a transport, which closes it from then on."""
        client, self._client = self._client, None
        assert client is not None, "taken once"  # noqa: S101 - an invariant, not a check of input
        return client

    def close(self) -> None:
        """Close the socket if nobody took it: its task ended before it began."""
        if self._client is not None:
            self._client.close()


class WebServer:
    """Serves ``handle`` on open listeners from its own thread."""

    def __init__(
        self,
        handle: Handler,
        listeners: Sequence[socket.socket],
        *,
        config: ConfigSource,
        stats: WebStats,
        wall_s: Callable[[], float],
        max_connections: int = 256,
        timeout_s: float = 10.0,
    ) -> None:
        """Take the listeners over; ``timeout_s`` is what a client may take over a request or an answer."""
        self._handle = handle
        self._listeners = tuple(listeners)
        self._config = config
        self._stats = stats
        self._wall_s = wall_s
        self._max_connections = max_connections
        self._timeout_s = timeout_s
        self._guests: dict[asyncio.Task[None], _Guest] = {}
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="web", daemon=True)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Return where it listens, with the ports that the kernel chose."""
        return tuple(describe(listener) for listener in self._listeners)

    def start(self) -> None:
        """Begin to serve; returns at once."""
        self._thread.start()
        _log.info("web_listening", addresses=self.addresses)

    def stop(self, timeout_s: float = 2.0) -> None:
        """Close the listeners, let answers under way end for half a second, and end the thread."""
        if not self._thread.is_alive():
            self._close()
            return
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        self._loop.set_exception_handler(log_stray)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._close()

    def _close(self) -> None:
        for listener in self._listeners:
            close_listener(listener)
        self._loop.close()

    async def _serve(self) -> None:
        doors = [asyncio.ensure_future(self._welcome(listener)) for listener in self._listeners]
        await self._stopping.wait()
        for door in doors:
            door.cancel()
        await asyncio.gather(*doors, return_exceptions=True)
        if self._guests:
            await asyncio.wait(list(self._guests), timeout=_GRACE_S)
        for task in self._guests:
            task.cancel()
        await asyncio.gather(*self._guests, return_exceptions=True)

    async def _welcome(self, listener: socket.socket) -> None:
        trouble = ""
        while True:
            try:
                client, _ = await self._loop.sock_accept(listener)
            except OSError as error:
                if str(error) != trouble:
                    _log.warning("accept_failed", address=describe(listener), error=str(error))
                trouble = str(error)
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            trouble = ""
            if len(self._guests) >= self._max_connections:
                self._send_longest_away()
            guest = _Guest(client, self._loop.time())
            task = self._loop.create_task(self._attend(guest))
            self._guests[task] = guest
            self._stats.connections = len(self._guests)
            task.add_done_callback(partial(self._say_goodbye, guest))

    def _send_longest_away(self) -> None:
        longest = min(self._guests, key=lambda task: self._guests[task].since_s)
        longest.cancel()
        del self._guests[longest]
        self._cut("crowded")

    def _say_goodbye(self, guest: _Guest, task: asyncio.Task[None]) -> None:
        guest.close()
        self._guests.pop(task, None)
        self._stats.connections = len(self._guests)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("web_error", error=repr(error))

    async def _attend(self, guest: _Guest) -> None:
        """Serve one client; what goes wrong with it is counted and told at debug level only."""
        config = self._config.current()
        try:
            reader, writer = await self._streams(guest.take(), config.tls)
        except ssl.SSLError as error:
            self._cut("tls_failed", error)
            return
        except OSError as error:
            self._cut("client_left", error)
            return
        connection = Connection(
            reader,
            writer,
            self._handle,
            timeout_s=self._timeout_s,
            wall_s=self._wall_s,
            progress=lambda: guest.wait_from(self._loop.time()),
        )
        try:
            if config.allows(writer.get_extra_info("peercert")):
                await connection.serve()
            else:
                self._cut("certificate_refused")
        except OSError as error:
            self._cut("client_left", error)
        except TooSlow as error:
            self._cut("too_slow", error)
        finally:
            writer.transport.abort()

    async def _streams(
        self, client: socket.socket, tls: ssl.SSLContext | None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader = asyncio.StreamReader(_READ_LIMIT_BYTES, self._loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=self._loop)
        transport, _ = await self._loop.connect_accepted_socket(
            lambda: protocol, client, ssl=tls, ssl_handshake_timeout=self._timeout_s if tls else None
        )
        transport.set_write_buffer_limits(high=0)  # so that `drain` means: all of it is with the kernel
        return reader, asyncio.StreamWriter(transport, protocol, reader, self._loop)

    def _cut(self, reason: CutReason, error: Exception | None = None) -> None:
        self._stats.cut[reason] += 1
        _log.debug("connection_cut", reason=reason, error=str(error or ""))


def log_stray(_: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Log what the event loop has to say about a connection that nobody waits for."""
    error = context.get("exception")
    if isinstance(error, OSError):
        _log.debug("connection_error", error=str(error))
    else:
        _log.error("web_error", message=context.get("message"), error=repr(error))
