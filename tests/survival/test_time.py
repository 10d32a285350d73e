"""Case 22: the wall clock is set, the process is suspended, the time zone is odd; each job still runs on time."""

import signal
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.agent import AgentProcess, eventually, running_agent
from tests.support.process import cpu_s, look
from tests.support.shifted_clock import ShiftedClock
from tests.support.stub_interpreter import StubInterpreter
from tests.survival.story import FAST, await_cards, await_ticks
from tests.survival.test_probes import runs

INTERVAL_S = 5.0
DAY_S = 86_400.0


class TestCase22TheSchedule:
    """Monotonic time decides what is due; APScheduler's calendar is kept in step with it."""

    @pytest.mark.parametrize("step_s", [-30.0, 20 * DAY_S])
    def test_clock_step_moves_no_probe(self, tmp_path: Path, step_s: float) -> None:
        """Gap of at most two intervals and no flood; little CPU and memory; one warning, with the size."""
        clock, stub = ShiftedClock(tmp_path), StubInterpreter(tmp_path)
        environ = {**FAST, **clock.environ, **stub.settings()}
        with running_agent(tmp_path, scenario="h200", environ=environ) as agent:
            await_cards(agent)
            _await_runs(agent, 1)
            before, used_s = look(agent.pid), cpu_s(agent.pid)
            ran_s = [time.monotonic()]
            clock.step_wall(step_s)
            for count in (2, 3):
                _await_runs(agent, count)
                ran_s.append(time.monotonic())
            after = look(agent.pid)
            gaps_s = [later - sooner for sooner, later in pairwise(ran_s)]
            assert max(gaps_s) <= 2 * INTERVAL_S
            assert min(gaps_s[1:]) > INTERVAL_S / 2
            assert after.memory_bytes - before.memory_bytes < 10e6
            assert cpu_s(agent.pid) - used_s < 2.0 + 0.2 * (ran_s[-1] - ran_s[0])
            stepped = [entry["step_s"] for entry in agent.events("wall_clock_stepped")]
            assert stepped == [pytest.approx(step_s, abs=0.5)]
            assert [
                entry["event"] for entry in agent.log if "step" in entry["event"] and entry["level"] == "warning"
            ] == ["wall_clock_stepped"]
            assert agent.value("heatsoak_clock_steps_total") == 1.0
            assert agent.get("/livez")[0] == 200

    def test_suspended_process_makes_up_for_one_run_a_job(self, tmp_path: Path) -> None:
        """Stopped for over two intervals: each card is probed once at once, then in rhythm; no false alarm."""
        stub = StubInterpreter(tmp_path)
        with running_agent(tmp_path, scenario="h200x2", environ={**FAST, **stub.settings()}) as agent:
            await_cards(agent, 2)
            _await_runs(agent, 2)
            await_ticks(agent, 2)
            agent.process.send_signal(signal.SIGSTOP)
            time.sleep(2.2 * INTERVAL_S)
            agent.process.send_signal(signal.SIGCONT)
            resumed_s = time.monotonic()
            _await_runs(agent, 4)
            assert time.monotonic() - resumed_s < INTERVAL_S
            _await_runs(agent, 5)
            assert time.monotonic() - resumed_s > INTERVAL_S / 2
            assert agent.events("nvml_down") == []
            assert agent.events("reader_hung") == []
            assert agent.value("heatsoak_nvml_reader_restarts_total") == 0.0
            assert agent.state() == "ok"

    @pytest.mark.parametrize("zone", ["Pacific/Apia", "Asia/Kathmandu", "Nowhere/Atall", ":"])
    def test_odd_time_zones_change_nothing(self, tmp_path: Path, zone: str) -> None:
        """Far ahead of UTC, off by a quarter hour, unknown, nonsense: probes run."""
        stub = StubInterpreter(tmp_path)
        with running_agent(tmp_path, scenario="h200", environ={**FAST, **stub.settings(), "TZ": zone}) as agent:
            _await_runs(agent, 1)


def _await_runs(agent: AgentProcess, count: int) -> None:
    eventually(lambda: runs(agent).get(("ok", ""), 0) >= count, f"{count} probes")
