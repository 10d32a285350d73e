"""Cases 17 to 21: probes that cannot, must not, will not, or may not be believed."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.support.agent import ROOT, AgentProcess, alive, eventually, running_agent
from tests.support.fakenvml import fake_env
from tests.support.process import descendants, look
from tests.support.stub_interpreter import StubInterpreter
from tests.survival.story import FAST, Story, await_cards

IDLE = "parts/node_of_h200"
MATMUL = "heatsoak_probe_matmul_flops_per_second"
BAD_STATES = {"lost", "faulty", "degraded", "throttled"}


class TestCase17NoUsableGpu:
    """The probe's software cannot use any card."""

    @pytest.mark.parametrize(
        ("behaviour", "reason"), [("no_tensorflow", "tensorflow_missing"), ("on_cpu", "ran_on_cpu")]
    )
    def test_environment_is_blamed_and_no_card(self, tmp_path: Path, behaviour: str, reason: str) -> None:
        """An error with its reason, no throughput, one node-level series, one log line, back-off."""
        stub = StubInterpreter(tmp_path, behaviour)
        with running_agent(tmp_path, scenario="h200x2", environ={**FAST, **stub.settings()}) as agent:
            eventually(lambda: runs(agent).get(("error", reason), 0) >= 1, "the reason")
            eventually(lambda: agent.value("heatsoak_probe_environment_broken") == 1.0, "the node-level series")
            assert agent.series(MATMUL) == []
            assert {agent.state("card", gpu=gpu) for gpu in ("0", "1")} == {"unknown"}
            if reason == "tensorflow_missing":
                eventually(lambda: agent.state() == "probe_environment_broken", "the node's state")
                eventually(lambda: runs(agent).get(("skipped", "environment_backoff"), 0) >= 1, "the back-off")
            told = [entry for entry in agent.log if reason in (entry.get("reason", ""), entry.get("cause", ""))]
            assert told
            stub.behave("well")

    def test_interpreter_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        """The path in probe.python reaches the log; nothing else happens."""
        environ = {**FAST, **StubInterpreter(tmp_path).settings(), "HEATSOAK_PROBE_PYTHON": "/nonexistent/python"}
        with running_agent(tmp_path, scenario="h200", environ=environ) as agent:
            told = eventually(lambda: agent.events("probe_not_started"), "the fault")
            assert "/nonexistent/python" in told[0]["detail"]
            eventually(lambda: runs(agent).get(("error", "interpreter_missing"), 0) >= 1, "the reason")
            assert agent.state("card", gpu="0") == "unknown"


class TestCase18TheRightCard:
    """CUDA may order cards differently from NVML: the child sees one card, and says which it had."""

    def test_child_sees_one_card_by_uuid(self, tmp_path: Path) -> None:
        """Each child is given one UUID, and CUDA's order is that of the bus."""
        stub = StubInterpreter(tmp_path, "show_and_fail")
        with running_agent(tmp_path, scenario="h200x2", environ={**FAST, **stub.settings()}) as agent:
            eventually(lambda: len(agent.events("probe_failed")) >= 2, "a child on each card")
            shown = [json.loads(entry["output"]) for entry in agent.events("probe_failed")[:2]]
            uuids = {each["uuid"] for each in agent.series("heatsoak_gpu_info")}
        assert {each["env"]["CUDA_VISIBLE_DEVICES"] for each in shown} == uuids
        assert {each["env"]["CUDA_DEVICE_ORDER"] for each in shown} == {"PCI_BUS_ID"}
        assert {each["spec"]["gpu_uuid"] for each in shown} == uuids
        assert {each["oom_score_adj"] for each in shown} == {1000}

    def test_sample_from_another_card_is_discarded(self, tmp_path: Path) -> None:
        """The child claims another UUID: an error, no throughput."""
        stub = StubInterpreter(tmp_path, "wrong_uuid")
        with running_agent(tmp_path, scenario="h200", environ={**FAST, **stub.settings()}) as agent:
            eventually(lambda: runs(agent).get(("error", "wrong_device"), 0) >= 1, "the discarded sample")
            assert agent.series(MATMUL) == []


class TestCase19GoodGuest:
    """A probe takes only what nobody uses."""

    def test_no_child_on_a_busy_card(self, tmp_path: Path) -> None:
        """A foreign process, work, memory, compute mode: each skipped with its word; the free card is probed."""
        story = Story(
            tmp_path,
            IDLE,
            "cards 5",
            "process 0 compute pid 1432 memory 512MiB",
            "card 1 nvmlDeviceGetUtilizationRates = gpu=7 memory=0",
            "card 2 nvmlDeviceGetComputeMode = 3",
            "card 3 nvmlDeviceGetMigMode = 1 1",
        )
        stub = StubInterpreter(tmp_path)
        with running_agent(tmp_path, scenario=story.path, environ={**FAST, **stub.settings()}) as agent:
            for reason in ("foreign_process", "busy", "compute_mode", "mig_mode"):
                eventually(lambda word=reason: runs(agent).get(("skipped", word), 0) >= 1, reason)  # type: ignore[misc]
            eventually(lambda: runs(agent).get(("ok", ""), 0) >= 1, "the probe of the free card")
            assert {each["gpu"] for each in agent.series(MATMUL)} == {"4"}

    def test_tenant_gets_the_card_at_once(self, tmp_path: Path) -> None:
        """The child is gone within a second or so of another process's arrival, deaf to SIGTERM as it is."""
        story, stub = Story(tmp_path, "h200"), StubInterpreter(tmp_path, "hang_deaf")
        with running_agent(tmp_path, scenario=story.path, environ={**FAST, **stub.settings()}) as agent:
            eventually(lambda: agent.value("heatsoak_probe_running") == 1.0, "a probe")
            story.tell("process 0 compute pid 1432 memory 512MiB")
            arrived_s = time.monotonic()
            eventually(lambda: agent.value("heatsoak_probe_running") == 0.0, "the end of the probe")
            assert time.monotonic() - arrived_s < 2.5
            eventually(lambda: runs(agent).get(("aborted", "tenant_arrived"), 0) == 1, "the reason")
            assert look(agent.pid).zombies == 0

    def test_a_full_card_is_not_a_slow_card(self, tmp_path: Path) -> None:
        """Out of device memory is an error of its own."""
        stub = StubInterpreter(tmp_path, "out_of_memory")
        with running_agent(tmp_path, scenario="h200", environ={**FAST, **stub.settings()}) as agent:
            eventually(lambda: runs(agent).get(("error", "oom"), 0) >= 2, "the error")
            assert agent.state("card", gpu="0") not in BAD_STATES
            assert agent.state() == "ok"


class TestCase20BadChildren:
    """Children that hang, fork, shout, mumble or die."""

    ENDS: ClassVar = {
        "hang_deaf": ("timeout", "deadline"),
        "double_fork": ("ok", ""),
        "grandchild": ("error", "exit_code"),
        "noise": ("ok", ""),
        "invalid_utf8": ("error", "bad_result"),
        "abort": ("error", "crashed"),
        "exit_137": ("error", "exit_code"),
        "long_line": ("error", "bad_result"),
    }

    def test_each_ends_under_its_word_and_leaves_nothing(self, tmp_path: Path) -> None:
        """One bad child a card, one after the other; the next round is on time; no zombie, no descendant, no leak."""
        stub = StubInterpreter(tmp_path, ",".join(self.ENDS))
        scenario = Story(tmp_path, IDLE, "cards 8", "latency all * = 0s").path
        environ = {**FAST, **stub.settings(), "HEATSOAK_PROBE_INTERVAL_S": "10", "HEATSOAK_PROBE_DEADLINE_S": "1"}
        with running_agent(tmp_path, scenario=scenario, environ=environ) as agent:
            await_cards(agent, 8)
            (reader,) = agent.children()
            expected: dict[tuple[str, str], int] = {}
            for end in self.ENDS.values():
                expected[end] = expected.get(end, 0) + 1
            eventually(lambda: runs(agent) == expected, f"each end once, {expected}")
            eventually(lambda: descendants(agent.pid) == {reader}, "no process but the reader")
            said = [entry["output"] for entry in agent.events("probe_failed")]
            assert all(len(output) <= 4000 for output in said)
            daemons = [
                int(word) for output in said for word in output.split("daemon ")[1:] for word in word.split()[:1]
            ]
            assert daemons
            assert not any(alive(pid) for pid in daemons)
            held = look(agent.pid)
            assert (held.zombies, held.children) == (0, 1)
            stub.behave("well")
            eventually(lambda: runs(agent).get(("ok", ""), 0) == 2 + 8, "the next round, on every card")
            assert look(agent.pid).descriptors <= held.descriptors + 2


class TestCase21NumbersThatMean:
    """19.2, 19.1, 6.7, 19.2: the third is slow, and what was not measured is not healthy."""

    def test_one_shot_flags_exactly_the_third(self, tmp_path: Path) -> None:
        """Exit code 10; the others are not flagged."""
        code, cards = _quick(tmp_path, "third_slow")
        assert code == 10, cards
        assert [card["spot"]["state"] == "degraded" for card in cards] == [False, False, True, False]

    def test_card_without_a_measurement_is_unknown(self, tmp_path: Path) -> None:
        """Exit code 11: a failed probe is no health."""
        code, cards = _quick(tmp_path, "third_slow,third_slow,abort,third_slow")
        assert code == 11, cards
        assert cards[2]["spot"]["state"] == "unknown"

    def test_agent_condemns_the_slow_card_only(self, tmp_path: Path) -> None:
        """With one run as proof: the third is degraded, the others are unknown for want of a reference, never bad."""
        stub = StubInterpreter(tmp_path, "third_slow")
        environ = {**FAST, **stub.settings(), "HEATSOAK_VERDICTS_DEGRADED_CONFIRM_MEASUREMENTS": "1"}
        with running_agent(tmp_path, scenario=four_at_rest(tmp_path).path, environ=environ) as agent:
            eventually(lambda: agent.state("card", gpu="2") == "degraded", "the slow card's state")
            assert {agent.state("card", gpu=gpu) for gpu in ("0", "1", "3")} <= {"unknown", "ok"}
            command = [sys.executable, str(ROOT / "heatsoak.py"), "check", "--url", agent.url]
            checked = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert checked.returncode == 10, checked.stdout


def runs(agent: AgentProcess) -> dict[tuple[str, str], int]:
    """Return how often the matmul probe ended in each way so far, by status and reason."""
    found = {}
    for key, count in agent.metrics().get("heatsoak_probe_runs_total", {}).items():
        labels = dict(key)
        if labels["probe"] == "matmul" and count:
            found[labels["status"], labels["reason"]] = int(count)
    return found


def four_at_rest(directory: Path) -> Story:
    """Return a story of four cards that nobody uses."""
    return Story(directory, IDLE, "cards 4")


def _quick(directory: Path, behaviour: str) -> tuple[int, list[dict[str, Any]]]:
    """Return exit code and cards of ``heatsoak probe --quick`` on four cards."""
    stub = StubInterpreter(directory, behaviour)
    environ = {
        **fake_env(four_at_rest(directory).path),
        **stub.settings(),
        "HOME": str(directory),
        "XDG_CACHE_HOME": str(directory),
    }
    command = [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(directory / "state")]
    done = subprocess.run(
        [*command, "probe", "--quick", "--json"],
        env=environ, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT,
    )  # fmt: skip
    return done.returncode, json.loads(done.stdout)["cards"]
