"""Cases 1, 2, 3, 8 and 9: no driver, a mismatched one, access lost, hanging calls, stale data."""

import os
import signal
import time
from pathlib import Path

import pytest

from agent.liveness import is_contained
from tests.support.agent import AgentProcess, alive, eventually, running_agent
from tests.support.process import children, look, state_of
from tests.support.shifted_clock import ShiftedClock
from tests.survival.story import (
    FAST,
    NO_ACCESS,
    STALE_S,
    Story,
    await_cards,
    await_no_readings,
    await_ticks,
    complaints,
    ends_soon,
)

NOWHERE = "/nonexistent/libnvidia-ml.so.1"


class TestCase01NoDriver:
    """No library, no driver, no card, an initialisation that fails."""

    @pytest.mark.parametrize(
        ("error", "lines"),
        [
            ("LIBRARY_NOT_FOUND", ("system nvmlInit* = LIBRARY_NOT_FOUND",)),
            ("DRIVER_NOT_LOADED", ("system nvmlInit* = DRIVER_NOT_LOADED",)),
            ("UNKNOWN", ("system nvmlInit* = UNKNOWN",)),
            ("NO_GPU", ("cards 0",)),
        ],
        ids=["error 12", "error 9", "error 999", "no card"],
    )
    def test_host_is_served_and_the_cause_told_once(self, tmp_path: Path, error: str, lines: tuple[str, ...]) -> None:
        """Up, live, ready, host metrics, the error by its name, one warning with the likely cause."""
        story = Story(tmp_path, "h200", *lines)
        with running_agent(tmp_path, scenario=story.path, environ=FAST) as agent:
            eventually(lambda: agent.value("heatsoak_nvml_error", error=error) == 1.0, "the error's name")
            await_ticks(agent, 20)
            assert agent.value("heatsoak_nvml_up") == 0.0
            assert (agent.value("heatsoak_host_cpu_seconds_total", mode="user") or 0.0) > 0.0
            assert [agent.get(path)[0] for path in ("/livez", "/readyz", "/metrics", "/", "/api/v1/status")] == [
                200
            ] * 5
            assert complaints(agent) == ["nvml_down"]
            assert len(agent.events("nvml_down")[0]["likely_cause"]) > 20

    def test_missing_library_is_the_same(self, tmp_path: Path) -> None:
        """A node without any NVIDIA software is a normal node."""
        with running_agent(tmp_path, environ={**FAST, "HEATSOAK_NVML_LIBRARY": NOWHERE}) as agent:
            eventually(lambda: agent.value("heatsoak_nvml_error", error="LIBRARY_NOT_FOUND") == 1.0, "the error's name")
            await_ticks(agent, 10)
            assert agent.state() == "ok"
            assert complaints(agent) == ["nvml_down"]

    def test_driver_that_comes_is_found_without_a_restart(self, tmp_path: Path) -> None:
        """Tried again after 5 s, not more often; then the cards are there, in the same process."""
        story = Story(tmp_path, "h200x2", "system nvmlInit* = DRIVER_NOT_LOADED")
        with running_agent(tmp_path, scenario=story.path, environ=FAST) as agent:
            eventually(lambda: agent.value("heatsoak_nvml_error", error="DRIVER_NOT_LOADED"), "the error's name")
            begun_s = time.monotonic()
            story.tell()
            await_cards(agent, 2)
            assert time.monotonic() - begun_s > 2.0
            assert agent.value("heatsoak_collector_errors_total", collector="nvml", reason="init_failed") == 1.0
            assert agent.value("heatsoak_nvml_up") == 1.0
            assert agent.value("heatsoak_nvml_error") is None


class TestCase02Mismatch:
    """The library was upgraded, the kernel module was not; and the same under a running agent."""

    def test_upgrade_under_a_running_agent(self, tmp_path: Path) -> None:
        """One error that names the cure, one node state, readings gone at once, back after the cure, counters whole."""
        story = Story(tmp_path, "h200x2")
        environ = {**FAST, "HEATSOAK_HOST_SYS_ROOT": str(tmp_path / "sys")}
        (tmp_path / "sys").mkdir()
        with running_agent(tmp_path, scenario=story.path, environ=environ) as agent:
            await_cards(agent, 2)
            pid, cpu_s = agent.pid, agent.value("heatsoak_host_cpu_seconds_total", mode="user") or 0.0
            story.tell("system nvmlInit* = LIB_RM_VERSION_MISMATCH", NO_ACCESS)
            begun_s = time.monotonic()
            await_no_readings(agent)
            assert time.monotonic() - begun_s < STALE_S + 3.0
            eventually(lambda: agent.value("heatsoak_nvml_error", error="LIB_RM_VERSION_MISMATCH") == 1.0, "the error")
            eventually(lambda: agent.state() == "nvml_down", "the node's state")
            assert [finding["rule"] for finding in agent.status()["node"]["findings"]] == ["nvml_down"]
            errors = [entry for entry in agent.events("nvml_down") if entry["level"] == "error"]
            assert ["reboot" in entry["likely_cause"] for entry in errors] == [True]
            story.tell('system nvmlSystemGetDriverVersion = "590.48.01"')
            cured_s = time.monotonic()
            eventually(lambda: agent.value("heatsoak_nvml_info", driver="590.48.01") == 1.0, "the new driver", 60.0)
            await_cards(agent, 2)
            assert time.monotonic() - cured_s < 60.0
            assert (agent.value("heatsoak_host_cpu_seconds_total", mode="user") or 0.0) >= cpu_s
            assert agent.pid == pid
            assert alive(pid)


class TestCase03AccessLost:
    """NVML was good, then every call fails, as when a container loses its device files."""

    @pytest.mark.parametrize("container", ["podman", ""])
    def test_only_a_container_asks_to_be_replaced(self, tmp_path: Path, container: str) -> None:
        """Readings expire, the driver is opened anew; only after two minutes, only in a container, /livez fails."""
        story, clock = Story(tmp_path, "h200"), ShiftedClock(tmp_path)
        environ = {**FAST, **clock.environ, "container": container}
        contained = is_contained({**os.environ, **environ})  # this machine itself may be a container
        with running_agent(tmp_path, scenario=story.path, environ=environ) as agent:
            await_cards(agent)
            story.tell(NO_ACCESS)
            await_no_readings(agent)
            eventually(lambda: agent.value("heatsoak_nvml_error", error="UNKNOWN") == 1.0, "the error's name")
            assert agent.value("heatsoak_nvml_up") == 0.0
            assert agent.get("/livez")[0] == 200
            failed = _failed_starts(agent)
            clock.pass_by(130.0)
            eventually(lambda: _failed_starts(agent) > failed, "another try")
            assert agent.get("/livez")[0] == (503 if contained else 200)
            assert agent.get("/metrics")[0] == 200

    def test_access_that_never_was_is_no_reason(self, tmp_path: Path) -> None:
        """A container on a node without a working driver stays alive for ever."""
        clock = ShiftedClock(tmp_path)
        environ = {**FAST, **clock.environ, "container": "podman"}
        with running_agent(tmp_path, scenario="nodriver", environ=environ) as agent:
            eventually(lambda: agent.value("heatsoak_nvml_up") == 0.0, "the missing driver")
            clock.pass_by(600.0)
            await_ticks(agent, 5)
            assert agent.get("/livez")[0] == 200


class TestCase08Hang:
    """A driver call does not return, or takes very long."""

    @pytest.mark.parametrize(
        ("line", "others"),
        [
            ("card 1 * = HANG", 1),
            ("card 1 nvmlDeviceGetComputeRunningProcesses_v3 = HANG", 1),
            ("latency 1 nvmlDeviceGetTemperature = 12s", 1),
        ],
        ids=["one card", "a process query", "slow"],
    )
    def test_one_card_costs_only_itself(self, tmp_path: Path, line: str, others: int) -> None:
        """Told as hung, for how long; the others go on; one reader, the same threads over 100 ticks; SIGTERM ends."""
        story = Story(tmp_path, "h200x2")
        with running_agent(tmp_path, scenario=story.path, environ={"HEATSOAK_AGENT_TICK_S": "0.05"}) as agent:
            await_cards(agent, 2)
            threads = look(agent.pid).threads
            story.tell(line)
            eventually(lambda: (agent.value("heatsoak_gpu_hung_seconds", gpu="1") or 0.0) > 1.0, "the hung card")
            await_cards(agent, others)
            before = agent.value("heatsoak_gpu_hung_seconds", gpu="1") or 0.0
            for _ in range(10):
                await_ticks(agent, 10)
                assert look(agent.pid).threads == threads
                assert len(children(agent.pid)) <= 2
            assert (agent.value("heatsoak_gpu_hung_seconds", gpu="1") or 0.0) > before + 3.0
            assert agent.state("card", gpu="1") == "lost"
            assert agent.value("heatsoak_nvml_up") == 1.0
            ends_soon(agent)

    def test_init_that_hangs_costs_only_the_cards(self, tmp_path: Path) -> None:
        """The host is served on time; the reader is replaced after its deadline; SIGTERM ends within 5 s."""
        environ = {**FAST, "HEATSOAK_NVML_INIT_DEADLINE_S": "1"}
        story = Story(tmp_path, "h200", "system nvmlInit* = HANG")
        with running_agent(tmp_path, scenario=story.path, environ=environ) as agent:
            eventually(lambda: (agent.value("heatsoak_nvml_hung_seconds") or 0.0) > 0.5, "the hang")
            eventually(lambda: agent.value("heatsoak_nvml_error", error="HUNG") == 1.0, "the error's name")
            overruns = agent.value("heatsoak_tick_overruns_total") or 0.0
            await_ticks(agent, 30)
            assert (agent.value("heatsoak_tick_overruns_total") or 0.0) <= overruns + 3
            assert agent.value("heatsoak_nvml_up") == 0.0
            assert len(children(agent.pid)) <= 1
            ends_soon(agent)


class TestCase09StaleData:
    """What is old is not served, and says so."""

    def test_reader_that_stands_still_serves_nothing_old(self, tmp_path: Path) -> None:
        """A stopped reader: fast values are gone after three periods; its last success stands still for all to see."""
        environ = {**FAST, "HEATSOAK_NVML_READ_DEADLINE_S": "60"}
        with running_agent(tmp_path, scenario="h200", environ=environ) as agent:
            await_cards(agent)
            (reader,) = children(agent.pid)

            os.kill(reader, signal.SIGSTOP)
            stopped_s = time.monotonic()
            last = agent.value("heatsoak_collector_last_success_timestamp_seconds", collector="nvml") or 0.0
            await_no_readings(agent)
            assert STALE_S - 0.5 < time.monotonic() - stopped_s < STALE_S + 2.0
            assert (
                agent.value("heatsoak_collector_last_success_timestamp_seconds", collector="nvml") or 0.0
            ) <= last + 0.5
            assert (agent.value("heatsoak_snapshot_timestamp_seconds") or 0.0) > time.time() - 2.0
            os.kill(reader, signal.SIGCONT)
            await_cards(agent)
            assert state_of(reader) != ""

    def test_standing_loop_fails_livez_and_empties_the_page(self, tmp_path: Path) -> None:
        """Where the loop itself has not moved for ten of its periods, /livez fails and no reading is shown."""
        clock = ShiftedClock(tmp_path)
        environ = {**clock.environ, "HEATSOAK_AGENT_TICK_S": "20"}
        with running_agent(tmp_path, scenario="h200", environ=environ) as agent:
            await_cards(agent)
            assert agent.get("/livez")[0] == 200
            clock.pass_by(201.0)
            assert agent.get("/livez")[0] == 503
            assert agent.series("heatsoak_gpu_temperature_celsius") == []
            assert agent.value("heatsoak_ticks_total") is not None


def _failed_starts(agent: AgentProcess) -> float:
    return agent.value("heatsoak_collector_errors_total", collector="nvml", reason="init_failed") or 0.0
