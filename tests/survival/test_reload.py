"""SIGHUP: taken over as a whole or not at all, and nothing else is forgotten."""

import os
import signal
from pathlib import Path

from tests.support.agent import AgentProcess, eventually, running_agent
from tests.survival.story import FAST, Story, await_cards, await_ticks
from tests.survival.test_cards import BUSY

HOT = "card 1 nvmlDeviceGetCurrentClocksEventReasons = nvmlClocksThrottleReasonHwThermalSlowdown"
CONFIG = "[verdicts.throttle]\nwindow_s = 5\n[node]\nrack = '{rack}'\n"


class TestReload:
    """A hot card, and an administrator who changes settings meanwhile."""

    def test_a_verdict_outlives_a_reload_that_does_not_concern_it(self, tmp_path: Path) -> None:
        """Another rack: on the page at once, and no alert ends and begins anew because of it."""
        story = Story(tmp_path, "h200x2", f"card 1 {BUSY}", HOT)
        with running_agent(tmp_path, scenario=story.path, environ=FAST, config=CONFIG.format(rack="r1")) as agent:
            _await_hot(agent)
            told = len(agent.log)
            agent.config_path.write_text(CONFIG.format(rack="r2"))
            _reload(agent)
            eventually(lambda: agent.series("heatsoak_node_info")[0]["rack"] == "r2", "the new rack")
            await_ticks(agent, 20)
            assert agent.state("card", gpu="1") == "throttled"
            assert [entry for entry in agent.log[told:] if entry["event"].startswith("verdict_")] == []

    def test_changed_thresholds_judge_anew(self, tmp_path: Path) -> None:
        """What was concluded from the old ones is not carried over: the rule is off, the verdict ends."""
        story = Story(tmp_path, "h200x2", f"card 1 {BUSY}", HOT)
        with running_agent(tmp_path, scenario=story.path, environ=FAST, config=CONFIG.format(rack="r1")) as agent:
            _await_hot(agent)
            off = CONFIG.format(rack="r1") + "[verdicts.rules]\nthermal_throttling = 'off'\n"
            agent.config_path.write_text(off)
            _reload(agent)
            eventually(lambda: agent.state("card", gpu="1") not in ("throttled", "unknown"), "the end of the verdict")

    def test_a_file_that_is_wrong_changes_nothing(self, tmp_path: Path) -> None:
        """One good and one bad line: neither is taken over, and the place of the bad one is told."""
        with running_agent(tmp_path, scenario="h200", environ=FAST, config=CONFIG.format(rack="r1")) as agent:
            await_cards(agent)
            agent.config_path.write_text(CONFIG.format(rack="r2") + "position = 7\n")
            os.kill(agent.pid, signal.SIGHUP)
            (refused,) = eventually(lambda: agent.events("reload_refused"), "the refusal")
            assert refused["faults"] == [f"{agent.config_path}:5: node.position: must be a text, not 7"]
            await_ticks(agent, 5)
            assert agent.series("heatsoak_node_info")[0]["rack"] == "r1"


def _await_hot(agent: AgentProcess) -> None:
    await_cards(agent, 2)
    eventually(lambda: agent.state("card", gpu="1") == "throttled", "the hot card's state")


def _reload(agent: AgentProcess) -> None:
    before = len(agent.events("reloaded"))
    os.kill(agent.pid, signal.SIGHUP)
    eventually(lambda: len(agent.events("reloaded")) > before, "the reload")
