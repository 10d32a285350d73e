"""Memory pressure: the kernel kills a probe child, and nothing else happens."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agent import alive, eventually, running_agent
from tests.support.process import children, look
from tests.support.stub_interpreter import StubInterpreter
from tests.survival.story import FAST, await_cards
from tests.survival.test_probes import BAD_STATES, runs

_LIMIT_BYTES = 256 << 20


@pytest.fixture
def small_cgroup() -> Iterator[Path]:
    """Return a memory control group of 256 MiB, of whichever version this machine has."""
    one, two = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
    group = (one if one.exists() else two) / f"heatsoak-{os.getpid()}"
    group.mkdir()
    (group / ("memory.limit_in_bytes" if one.exists() else "memory.max")).write_text(str(_LIMIT_BYTES))
    yield group
    eventually(lambda: not (group / "cgroup.procs").read_text(), "the end of all processes in it")
    group.rmdir()


class TestOutOfMemory:
    """What a child eats is the child's undoing only."""

    @pytest.mark.system
    def test_child_killed_by_the_kernel_is_an_error_of_its_own(self, tmp_path: Path, small_cgroup: Path) -> None:
        """In the agent's own small memory group: error/oom_killed; agent and reader live, no card is blamed."""
        stub = StubInterpreter(tmp_path, "eat")
        before = ("sh", "-c", f'echo $$ > {small_cgroup}/cgroup.procs && exec "$@"', "sh")
        with running_agent(tmp_path, scenario="h200", environ={**FAST, **stub.settings()}, before=before) as agent:
            await_cards(agent)
            (reader,) = children(agent.pid)
            eventually(lambda: runs(agent).get(("error", "oom_killed"), 0) >= 1, "the reason")
            assert runs(agent).keys() == {("error", "oom_killed")}
            assert alive(agent.pid)
            assert alive(reader)
            assert agent.state("card", gpu="0") not in BAD_STATES
            assert look(agent.pid).zombies == 0
            stub.behave("well")
            eventually(lambda: runs(agent).get(("ok", ""), 0) >= 1, "the next probe")

    @pytest.mark.system
    def test_no_child_starts_where_it_would_not_fit(self, tmp_path: Path, small_cgroup: Path) -> None:
        """The group has 256 MiB, the child is said to need 4096: skipped, with its reason."""
        stub = StubInterpreter(tmp_path, "eat")
        before = ("sh", "-c", f'echo $$ > {small_cgroup}/cgroup.procs && exec "$@"', "sh")
        environ = {**FAST, **stub.settings(), "HEATSOAK_PROBE_HOST_MEMORY_MIB": "4096"}
        with running_agent(tmp_path, scenario="h200", environ=environ, before=before) as agent:
            eventually(lambda: runs(agent).get(("skipped", "host_memory"), 0) >= 1, "the reason")
            assert runs(agent).keys() == {("skipped", "host_memory")}

    def test_child_killed_by_somebody_is_not_called_out_of_memory(self, tmp_path: Path) -> None:
        """SIGKILL without the kernel's own count is a crash, by its signal's name."""
        stub = StubInterpreter(tmp_path, "kill")
        with running_agent(tmp_path, scenario="h200", environ={**FAST, **stub.settings()}) as agent:
            eventually(lambda: runs(agent).get(("error", "crashed"), 0) >= 1, "the reason")
            assert ("error", "oom_killed") not in runs(agent)

    def test_children_go_first_and_the_agent_does_not_ask_to(self, tmp_path: Path) -> None:
        """A child has the highest score, the agent the one it was given."""
        stub = StubInterpreter(tmp_path, "hang")
        with running_agent(tmp_path, scenario="h200", environ={**FAST, **stub.settings()}) as agent:
            eventually(lambda: agent.value("heatsoak_probe_running") == 1.0, "a probe")
            scores = eventually(lambda: _scores(agent.pid), "a child with a score")
            assert scores == {1000, int(Path("/proc/self/oom_score_adj").read_text())}
            assert Path(f"/proc/{agent.pid}/oom_score_adj").read_text() == Path("/proc/self/oom_score_adj").read_text()


def _scores(pid: int) -> set[int]:
    """Return the scores of the agent's children once one of them is a probe's."""
    found = {int(Path(f"/proc/{child}/oom_score_adj").read_text()) for child in children(pid)}
    return found if 1000 in found else set()
