"""Ten thousand ticks: threads, descriptors and memory are as many and as much as after the first thousand."""

from pathlib import Path

import pytest

from tests.support.agent import running_agent
from tests.support.process import look
from tests.survival.story import Story, await_cards, await_ticks


class TestTenThousandTicks:
    """Nothing accumulates a tick."""

    @pytest.mark.timeout(600)
    def test_what_the_agent_holds_is_flat(self, tmp_path: Path) -> None:
        """Ticks as fast as they come, a card that comes and goes, processes that change all the time."""
        lines = "card 1 * = GPU_IS_LOST during 1..2 repeat 4", "process 0 compute count 20 churn memory 1MiB"
        story = Story(tmp_path, "h200x2", *lines)
        environ = {"SOAK_TICK_S": "0.0005", "FAKE_NVML_SPEED": "5"}
        with running_agent(
            tmp_path, scenario=story.path, environ=environ, program=("-m", "benchmarks.soak.agent")
        ) as agent:
            await_cards(agent, 2)
            await_ticks(agent, 1000)
            before = look(agent.pid)
            for _ in range(9):
                await_ticks(agent, 1000)
                now = look(agent.pid)
                assert now.threads == before.threads
                assert now.zombies == 0
                assert now.descriptors <= before.descriptors + 2
            assert now.memory_bytes - before.memory_bytes < 8e6
            assert now.children == 1
