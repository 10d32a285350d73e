"""Case 14: many scrapers, and bad ones."""

import http.client
import socket
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.soak.scrapers import NUISANCES, Nuisances
from tests.support.agent import AgentProcess, eventually, running_agent
from tests.support.process import look
from tests.survival.story import FAST, await_cards, await_ticks


class TestCase14Scrapers:
    """What clients do costs the clients."""

    def test_driver_is_asked_once_a_tick_however_many_ask(self, tmp_path: Path) -> None:
        """Two servers and 50 clients at once: sweeps follow the ticks, the threads are as many as before."""
        with running_agent(tmp_path, scenario="sixteen", environ={"HEATSOAK_AGENT_TICK_S": "0.25"}) as agent:
            await_cards(agent, 16)
            threads = look(agent.pid).threads
            ticks, sweeps = _ticks_and_sweeps(agent)
            with ThreadPoolExecutor(50) as clients:
                codes = list(clients.map(lambda _: agent.get("/metrics")[0], range(300)))
                assert look(agent.pid).threads == threads
            later_ticks, later_sweeps = _ticks_and_sweeps(agent)
        assert set(codes) == {200}
        assert later_sweeps - sweeps <= later_ticks - ticks + 1

    def test_bad_clients_delay_nobody(self, tmp_path: Path) -> None:
        """Resets, halves, silence, one byte a second: a good client waits milliseconds; no traceback, no warning."""
        with running_agent(tmp_path, scenario="sixteen", environ=FAST) as agent:
            await_cards(agent, 16)
            held = look(agent.pid)
            ended, bad = threading.Event(), Nuisances(agent.url.removeprefix("http://"), seed=3)
            thread = threading.Thread(target=bad.run, args=(ended,))
            thread.start()
            until_s = time.monotonic() + 4.0
            latencies_s = []
            while time.monotonic() < until_s:
                latencies_s.append(_scrape_s(agent))
                ended.wait(0.05)
            ended.set()
            thread.join()
            assert sum(bad.counts.values()) > 20
            assert statistics.median(latencies_s) < 0.25
            eventually(lambda: look(agent.pid).descriptors <= held.descriptors + 3, "the end of their connections")
            assert look(agent.pid).threads == held.threads
            assert not [
                entry
                for entry in agent.log
                if "exception" in entry or (entry["logger"] == "web" and entry["level"] != "info")
            ]
            assert agent.value("heatsoak_web_requests_total", code="405") is not None

    def test_more_connections_than_there_is_room_for(self, tmp_path: Path) -> None:
        """Silent ones give way: the next scrape is answered."""
        environ = {**FAST, "HEATSOAK_WEB_MAX_CONNECTIONS": "10"}
        with running_agent(tmp_path, scenario="h200", environ=environ) as agent:
            await_cards(agent)
            host, _, port = agent.url.removeprefix("http://").rpartition(":")
            silent = [socket.create_connection((host, int(port))) for _ in range(40)]
            assert agent.get("/metrics")[0] == 200
            cut = "heatsoak_web_connections_cut_total"
            eventually(lambda: (agent.value(cut, reason="crowded") or 0.0) >= 30.0, "those sent away")
            for client in silent:
                client.close()

    def test_methods_and_paths(self, tmp_path: Path) -> None:
        """HEAD has the headers only, another method is refused, another path is not found; nothing changes state."""
        with running_agent(tmp_path, scenario="h200", environ=FAST) as agent:
            await_cards(agent)
            assert _ask(agent, "HEAD", "/metrics") == (200, b"")
            assert _ask(agent, "GET", "/healthz")[0] == 404
            assert _ask(agent, "GET", "/api/v1/pause")[0] == 404
            for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE", "OPTIONS"):
                assert _ask(agent, method, "/metrics")[0] in (405, 501)
            assert _ask(agent, "GET", "/livez")[0] == 200

    def test_nuisances_cover_what_the_case_names(self) -> None:
        """The storm holds each kind of bad client."""
        assert {"reset", "half a request", "silence", "slow reader"} <= set(NUISANCES)


def _scrape_s(agent: AgentProcess) -> float:
    begin_s = time.monotonic()
    assert agent.get("/metrics")[0] == 200
    return time.monotonic() - begin_s


def _ticks_and_sweeps(agent: AgentProcess) -> tuple[float, float]:
    await_ticks(agent, 1)
    found = agent.metrics()
    sweeps = {dict(key)["collector"]: value for key, value in found["heatsoak_collector_attempts_total"].items()}
    return found["heatsoak_ticks_total"][()], sweeps["nvml"]


def _ask(agent: AgentProcess, method: str, path: str) -> tuple[int, bytes]:
    client = http.client.HTTPConnection(agent.url.removeprefix("http://"), timeout=10)
    try:
        client.request(method, path)
        answer = client.getresponse()
        return answer.status, answer.read()
    finally:
        client.close()
