"""One connection, byte by byte: what is answered, what is refused, what is cut off."""

import socket
import struct
import time
from contextlib import suppress

import pytest

from exporters.web.connection import MAX_BODY_BYTES, MAX_HEAD_BYTES
from tests.support.snapshots import sixteen_cards
from tests.support.web import ask, is_closed, read_answer, running_site

SHORT_S = 0.3


def test_a_connection_serves_one_request_after_another() -> None:
    """Scrapers keep theirs open."""
    with running_site() as site, site.connect() as client:
        assert [ask(client).status for _ in range(5)] == [200] * 5


def test_head_gets_the_headers_of_get_and_no_body() -> None:
    """On every path, and the connection stays usable."""
    with running_site(sixteen_cards()) as site, site.connect() as client:
        for path in ("/", "/metrics", "/api/v1/status", "/livez", "/readyz", "/nope"):
            head, get = ask(client, path, "HEAD"), ask(client, path)
            assert (head.status, head.headers["content-length"]) == (get.status, get.headers["content-length"])
            assert head.body == b""
            assert len(get.body) == int(get.headers["content-length"])


def test_a_request_for_another_method_is_refused_with_its_body_read() -> None:
    """405, and the next request on the same connection is understood."""
    with running_site() as site, site.connect() as client:
        client.sendall(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello")
        refused = read_answer(client)
        assert (refused.status, refused.headers["allow"]) == (405, "GET, HEAD")
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
        assert read_answer(client).status == 405
        assert ask(client).status == 200


def test_whoever_waits_to_be_told_to_continue_is_answered_at_once() -> None:
    """No body is wanted here."""
    with running_site() as site, site.connect() as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
        assert read_answer(client).status == 405


@pytest.mark.parametrize(
    "target", ["http://x/livez", "HTTPS://x:9838/livez?a=http://y/nope", "/livez?to=http://y/nope"]
)
def test_a_target_may_be_a_whole_url(target: str) -> None:
    """As a client writes it that takes us for a proxy; RFC 9112 wants it understood."""
    with running_site() as site, site.connect() as client:
        assert ask(client, target).status == 200
        assert ask(client, "http://x/nope").status == 404


def test_requests_sent_ahead_are_answered_in_order() -> None:
    """Two requests in one packet."""
    with running_site() as site, site.connect() as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\nGET /nope HTTP/1.1\r\nHost: x\r\n\r\n")
        data = b""
        while data.count(b"HTTP/1.1") < 2 or not data.endswith(b"/readyz\n"):
            data += client.recv(65536)
        assert data.index(b"200 OK") < data.index(b"404 Not Found")


def test_an_old_client_is_answered_and_let_go() -> None:
    """HTTP/1.0, and whoever asks to close."""
    with running_site() as site:
        for request in (b"GET /livez HTTP/1.0\r\n\r\n", b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
            with site.connect() as client:
                client.sendall(request)
                answer = read_answer(client)
                assert (answer.status, answer.headers["connection"]) == (200, "close")
                assert is_closed(client)


def test_a_client_that_says_all_it_has_to_say_is_still_answered() -> None:
    """Half-closed: it reads on."""
    with running_site() as site, site.connect() as client:
        client.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        assert read_answer(client).status == 200
        assert is_closed(client)


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: many\r\n\r\n", 400),
        (b"GET /livez HTTP/1.1\r\nHost: x\r\nX: " + b"a" * (MAX_HEAD_BYTES + 1), 431),
        (b"GET /livez HTTP/1.1\r\nHost: x\r\n" + b"X: a\r\n" * (MAX_HEAD_BYTES // 6) + b"\r\n", 431),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\n" + b"a" * (MAX_BODY_BYTES + 1), 413),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
    ],
)
def test_broken_requests_are_told_so_and_the_connection_closes(request_bytes: bytes, status: int) -> None:
    """What is too large is never read to its end."""
    with running_site() as site, site.connect() as client:
        client.sendall(request_bytes)
        assert read_answer(client).status == status
        assert is_closed(client)


@pytest.mark.parametrize("said", [b"", b"GET /met", b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab"])
def test_a_client_that_does_not_go_on_is_cut_off_and_counted(said: bytes) -> None:
    """Silent from the start, in the head, in the body."""
    with running_site(sixteen_cards(), timeout_s=SHORT_S) as site:
        with site.connect() as client:
            client.sendall(said)
            assert is_closed(client)
        page = site.ask("/metrics").body
        assert b'heatsoak_web_connections_cut_total{reason="too_slow"} 1.0' in page


def drip(client: socket.socket) -> None:
    """Send a byte every 50 ms until the server closes the connection."""
    client.settimeout(0.05)
    with suppress(ConnectionError):
        while True:
            client.sendall(b"G")
            with suppress(TimeoutError):
                assert client.recv(1) == b"", "nothing is answered"
                return


def test_dripping_bytes_buy_no_time() -> None:
    """The whole request has its deadline, not each byte."""
    with running_site(timeout_s=SHORT_S) as site, site.connect() as client:
        begin_s = time.monotonic()
        drip(client)
        assert SHORT_S <= time.monotonic() - begin_s < 5


def test_a_reader_that_stops_reading_is_cut_off() -> None:
    """A page that does not leave in time takes its connection with it."""
    with running_site(sixteen_cards(), timeout_s=SHORT_S) as site, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        client.settimeout(20)
        client.connect(("127.0.0.1", site.port))
        client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 20)
        deadline_s = time.monotonic() + 10
        while b'{reason="too_slow"} 1.0' not in site.ask("/metrics").body:
            assert time.monotonic() < deadline_s
            site.publish(sixteen_cards())
        assert is_closed(client)


def test_a_client_that_resets_leaves_no_trace_but_a_count() -> None:
    """A scraper that dies in the middle of an answer."""
    with running_site(sixteen_cards()) as site:
        for _ in range(5):
            with site.connect() as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n" * 10)
        assert site.ask("/livez").status == 200
