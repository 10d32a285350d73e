"""One connection: HTTP/1.1 requests in, answers out, and never longer than the client is allowed to take.

h11 does the protocol; this module moves the bytes. Whatever the client does costs this connection only.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

import h11

from exporters.web.messages import Request, Response, text_response

Handler = Callable[[Request], Awaitable[Response]]

MAX_HEAD_BYTES: Final = 16 * 1024
MAX_BODY_BYTES: Final = 64 * 1024
KEEP_ALIVE_S: Final = 120.0
_CHUNK_BYTES: Final = 64 * 1024
_CLOSE: Final = ("Connection", "close")


class TooSlow(Exception):  # noqa: N818 - what a client is, not a bug
    """A client took longer than it may over a request or an answer."""


class Connection:
    """Serves one client until it closes, breaks the protocol or takes too long."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handle: Handler,
        *,
        timeout_s: float,
        wall_s: Callable[[], float],
        progress: Callable[[], None],
    ) -> None:
        """Take the streams; ``progress`` is called whenever the client has done its part."""
        self._reader = reader
        self._writer = writer
        self._handle = handle
        self._timeout_s = timeout_s
        self._wall_s = wall_s
        self._progress = progress
        self._protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)

    async def serve(self) -> None:
        """Answer requests one after another until the client has no more.

        Raises:
            OSError: the client is gone.
            TooSlow: it was cut off.
        """
        with self._deadline(self._timeout_s):
            await self._first_bytes()
        while await self._exchange():
            self._protocol.start_next_cycle()
            with suppress(TooSlow), self._deadline(KEEP_ALIVE_S):
                await self._first_bytes()
        with self._deadline(self._timeout_s):
            self._writer.close()
            await self._writer.wait_closed()

    async def _first_bytes(self) -> None:
        if not self._protocol.trailing_data[0]:
            await self._receive()

    async def _exchange(self) -> bool:
        """Answer one request; return whether another may follow."""
        method = ""
        try:
            request = await self._request()
            if request is None:
                return False
            method = request.method
            response = await self._handle(request)
        except h11.RemoteProtocolError as error:
            response = text_response(HTTPStatus(error.error_status_hint), str(error), _CLOSE)
        self._progress()
        with self._deadline(self._timeout_s):
            await self._send(response, with_body=method != "HEAD")
        self._progress()
        return self._protocol.our_state is h11.DONE and self._protocol.their_state is h11.DONE

    @contextmanager
    def _deadline(self, seconds: float) -> Iterator[None]:
        """Cut the connection off where the block is not left in time, which raises ``TooSlow``."""
        expired: list[bool] = []

        def cut_off() -> None:
            expired.append(True)
            self._writer.transport.abort()

        timer = asyncio.get_running_loop().call_later(seconds, cut_off)
        try:
            yield
        except (OSError, h11.RemoteProtocolError):
            if not expired:
                raise
        finally:
            timer.cancel()
        if expired:
            raise TooSlow(f"not done within {seconds:g} s")

    async def _request(self) -> Request | None:
        """Return the next request, its body read and forgotten; None where the client closes instead."""
        with self._deadline(self._timeout_s):
            head = await self._event()
            if not isinstance(head, h11.Request):
                return None
            _refuse_long(head)
            await self._skip_body()
        return _as_request(head)

    async def _skip_body(self) -> None:
        size_bytes = 0
        while not self._protocol.they_are_waiting_for_100_continue:
            event = await self._event()
            if not isinstance(event, h11.Data):
                return
            size_bytes += len(event.data)
            if size_bytes > MAX_BODY_BYTES:
                raise h11.RemoteProtocolError(f"a body may have {MAX_BODY_BYTES} bytes", error_status_hint=413)

    async def _event(self) -> object:
        while (event := self._protocol.next_event()) is h11.NEED_DATA:
            await self._receive()
        return event

    async def _receive(self) -> None:
        self._protocol.receive_data(await self._reader.read(_CHUNK_BYTES))

    async def _send(self, response: Response, *, with_body: bool) -> None:
        headers = [
            ("Date", formatdate(self._wall_s(), usegmt=True)),
            ("Content-Type", response.content_type),
            ("Content-Length", str(len(response.body))),
            *response.headers,
        ]
        reason = response.status.phrase.encode("ascii")
        head = h11.Response(status_code=response.status, headers=headers, reason=reason)
        self._write(head)
        if with_body:
            rest = memoryview(response.body)
            while rest:
                self._write(h11.Data(data=bytes(rest[:_CHUNK_BYTES])))
                rest = rest[_CHUNK_BYTES:]
                await self._writer.drain()
        self._write(h11.EndOfMessage())
        await self._writer.drain()

    def _write(self, event: h11.Event) -> None:
        data = self._protocol.send(event)
        if data:
            self._writer.write(data)


def _refuse_long(head: h11.Request) -> None:
    """Refuse what h11 lets through where all of it came at once.

    Raises:
        h11.RemoteProtocolError: the request's head is longer than it may be.
    """
    size_bytes = len(head.target) + sum(len(name) + len(value) + 4 for name, value in head.headers)
    if size_bytes > MAX_HEAD_BYTES:
        raise h11.RemoteProtocolError(f"a request head may have {MAX_HEAD_BYTES} bytes", error_status_hint=431)


def _as_request(head: h11.Request) -> Request:
    headers: dict[str, str] = {}
    for name, value in head.headers:
        key, text = name.decode("ascii"), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return Request(head.method.decode("ascii"), _path(head.target.decode("ascii")), headers)


def _path(target: str) -> str:
    """Return the path of a request's target, which may be a whole URL (RFC 9112 §3.2.2)."""
    path = target.partition("?")[0]
    scheme, mark, rest = path.partition("://")
    return f"/{rest.partition('/')[2]}" if mark and scheme.lower() in ("http", "https") else path
