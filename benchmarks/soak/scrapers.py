"""Scrapers, most of them bad: what they do to the agent, and how a good one fares beside them."""

import http.client
import random
import re
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress

_TAKEN = re.compile(rb"^heatsoak_snapshot_timestamp_seconds (\S+)$", re.MULTILINE)
_RESET = struct.pack("ii", 1, 0)
_GET = b"GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n"
NUISANCES = {
    "reset": _GET,
    "half a request": _GET[:24],
    "silence": b"",
    "slow reader": _GET,
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\xff\x00\r\n\r\n",
    "header without end": b"GET / HTTP/1.1\r\nX: " + b"a" * 60_000,
    "POST": b"POST /metrics HTTP/1.1\r\nHost: node\r\nContent-Length: 3\r\n\r\nabc",
    "HEAD": _GET.replace(b"GET", b"HEAD"),
    "strange path": b"GET /../../etc/passwd HTTP/1.1\r\nHost: node\r\n\r\n",
}


class GoodScraper:
    """Scrapes ten times a second and notes how long that took and how old the page was."""

    def __init__(self, address: str) -> None:
        """Take host and port."""
        self._address = address
        self.latencies_s: list[float] = []
        self.failures: Counter[str] = Counter()
        self.oldest_s = 0.0
        """The greatest age of a page's readings when it arrived."""

    def run(self, ended: threading.Event) -> None:
        """Scrape until ``ended``."""
        while not ended.is_set():
            client = http.client.HTTPConnection(self._address, timeout=10)
            try:
                while not ended.wait(0.1):
                    self._scrape(client)
            except (OSError, http.client.HTTPException) as error:
                self.failures[type(error).__name__] += 1
            finally:
                client.close()

    def _scrape(self, client: http.client.HTTPConnection) -> None:
        begin_s = time.monotonic()
        client.request("GET", "/metrics")
        answer = client.getresponse()
        page = answer.read()
        self.latencies_s.append(time.monotonic() - begin_s)
        taken = _TAKEN.search(page)
        if answer.status != 200 or taken is None:
            self.failures[f"status {answer.status}"] += 1
        else:
            self.oldest_s = max(self.oldest_s, time.time() - float(taken[1]))


class Nuisances:
    """Clients that misbehave, ten a second, some of them for seconds."""

    def __init__(self, address: str, seed: int) -> None:
        """Take host and port."""
        host, _, port = address.rpartition(":")
        self._address = (host, int(port))
        self._draw = random.Random(seed)
        self._held: list[tuple[float, socket.socket]] = []
        self.counts: Counter[str] = Counter()

    def run(self, ended: threading.Event) -> None:
        """Trouble the agent until ``ended``."""
        while not ended.wait(0.1):
            name = self._draw.choice(sorted(NUISANCES))
            self.counts[name] += 1
            with suppress(OSError):
                self._trouble(name)
            self._let_go(time.monotonic())
        self._let_go(float("inf"))

    def _trouble(self, name: str) -> None:
        client = socket.create_connection(self._address, timeout=5)
        self._held.append((time.monotonic() + self._draw.uniform(0, 5), client))
        client.sendall(NUISANCES[name])
        if name == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            client.close()
        elif name == "slow reader":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            client.recv(1)

    def _let_go(self, now_s: float) -> None:
        for until_s, client in self._held:
            if until_s <= now_s:
                client.close()
        self._held = [(until_s, client) for until_s, client in self._held if until_s > now_s]
