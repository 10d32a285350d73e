"""How long a well-behaved scraper waits while many others, slow ones and dead ones use the same agent.

The server runs in a process of its own on a snapshot of 16 cards that is renewed each second. Beside the
scrapers at 1 Hz: readers that take one byte a second, clients that send half a request, clients that send
nothing. Run: python -m benchmarks.scrape_storm; with --agent the whole agent is scraped, not the web server alone.
"""

import argparse
import asyncio
import logging
import multiprocessing
import multiprocessing.connection
import random
import socket
import statistics
import tempfile
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import structlog

from agent.clock import SystemClock
from agent.config.listen import ListenAddress
from exporters.board import Board
from exporters.web.listen import open_listeners
from exporters.web.site import build_site
from tests.support.agent import eventually, running_agent
from tests.support.snapshots import HOST_METRICS, sixteen_cards

CARDS = 16
TEXT = "text/plain;version=0.0.4"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


def serve(ready: multiprocessing.connection.Connection) -> None:
    """Serve 16 cards, renewed each second, until the other side of ``ready`` closes."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    clock, board = SystemClock(), Board()
    listeners = open_listeners([ListenAddress("127.0.0.1", 0)])
    server = build_site(
        listeners,
        board=board,
        clock=clock,
        version="0",
        definitions=HOST_METRICS,
        standstill=lambda: "",
        stale_after_s=5.0,
    )
    ended = threading.Event()

    def tick() -> None:
        at_s = 0.0
        while not clock.wait(ended, 1.0 if at_s else 0.0):
            at_s += 1.0
            fresh = {"taken_monotonic_s": clock.monotonic_s(), "taken_wall_s": clock.wall_s()}
            board.publish(msgspec.structs.replace(sixteen_cards(at_s), **fresh))

    ticker = threading.Thread(target=tick)
    ticker.start()
    server.start()
    ready.send(listeners[0].getsockname()[1])
    try:
        ready.recv()
    except EOFError:
        ended.set()
    server.stop()
    ticker.join()


def request(accept: str, *, compressed: bool) -> bytes:
    """Return a scrape as a Prometheus server sends it."""
    encoding = "Accept-Encoding: gzip\r\n" if compressed else ""
    return f"GET /metrics HTTP/1.1\r\nHost: node\r\nAccept: {accept}\r\n{encoding}\r\n".encode()


async def scraper(port: int, end_s: float, latencies_s: list[float], message: bytes) -> None:
    """Scrape once a second on one connection, beginning at a random moment."""
    loop = asyncio.get_running_loop()
    await asyncio.sleep(random.random())
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**20)
    while loop.time() < end_s:
        begin_s = loop.time()
        writer.write(message)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        latencies_s.append(loop.time() - begin_s)
        await asyncio.sleep(max(0.0, begin_s + 1.0 - loop.time()))
    writer.close()


async def nuisance(port: int, end_s: float, message: bytes) -> None:
    """Send ``message``, then take one byte a second; begin again when the server has had enough."""
    loop = asyncio.get_running_loop()
    while loop.time() < end_s:
        await asyncio.sleep(random.random())
        with socket.socket() as client, suppress(OSError, asyncio.TimeoutError):
            client.setblocking(False)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            await loop.sock_connect(client, ("127.0.0.1", port))
            await loop.sock_sendall(client, message)
            while await asyncio.wait_for(loop.sock_recv(client, 1), max(0.0, end_s - loop.time())):
                await asyncio.sleep(1.0)


async def storm(port: int, seconds: float, scrapers: int, nuisances: int) -> list[float]:
    """Return every latency of the well-behaved, in seconds."""
    end_s = asyncio.get_running_loop().time() + seconds
    latencies_s: list[float] = []
    scrapes = [request(TEXT, compressed=True), request(OPENMETRICS, compressed=True), request(TEXT, compressed=False)]
    half, whole = b"GET /metrics HTTP/1.1\r\nHo", request(TEXT, compressed=False)
    clients: list[Coroutine[None, None, None]] = [
        scraper(port, end_s, latencies_s, scrapes[index % len(scrapes)]) for index in range(scrapers)
    ]
    clients += [nuisance(port, end_s, (whole, half, b"")[index % 3]) for index in range(nuisances)]
    await asyncio.gather(*clients)
    return latencies_s


def cpu_s(pid: int) -> float:
    """Return the CPU time a process has used, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def main() -> None:
    """Run the storm and print the percentiles."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--scrapers", type=int, default=50)
    parser.add_argument("--nuisances", type=int, default=60)
    parser.add_argument("--agent", action="store_true", help="Run the whole agent on a fake driver with 16 cards.")
    arguments = parser.parse_args()
    with running_agent_server() if arguments.agent else running_web_server() as (port, pid):
        before_s = cpu_s(pid)
        found_s = asyncio.run(storm(port, arguments.seconds, arguments.scrapers, arguments.nuisances))
        used_s = cpu_s(pid) - before_s
    cuts = statistics.quantiles(found_s, n=1000)
    print(
        f"{arguments.scrapers} scrapers at 1 Hz beside {arguments.nuisances} slow or dead clients, 16 cards,"
        f" {len(found_s)} scrapes: p50 {cuts[499] * 1e3:.1f} ms, p99 {cuts[989] * 1e3:.1f} ms,"
        f" max {max(found_s) * 1e3:.1f} ms; server {used_s / arguments.seconds * 100:.1f} % of a core"
    )


@contextmanager
def running_web_server() -> Iterator[tuple[int, int]]:
    """Yield port and process id of the web server alone, in a process of its own."""
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(there,))
    server.start()
    there.close()
    yield here.recv(), server.pid or 0
    here.close()
    server.join()


@contextmanager
def running_agent_server() -> Iterator[tuple[int, int]]:
    """Yield port and process id of a whole agent: ticks, reader child, host, verdicts, at its usual second."""
    with (
        tempfile.TemporaryDirectory(prefix="heatsoak-storm-") as name,
        running_agent(Path(name), scenario="sixteen") as agent,
    ):
        temperature = "heatsoak_gpu_temperature_celsius"
        eventually(lambda: len(agent.metrics().get(temperature, {})) == CARDS, "all cards")
        yield int(agent.url.rpartition(":")[2]), agent.pid


if __name__ == "__main__":
    main()
