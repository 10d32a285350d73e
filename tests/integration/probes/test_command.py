"""``heatsoak probe`` as a user calls it, on played cards and on none."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.fakenvml import fake_env, write_scenario
from tests.support.stub_interpreter import StubInterpreter

ROOT = Path(__file__).parents[3]


def probe(*arguments: str, environment: dict[str, str] | None = None) -> "subprocess.CompletedProcess[str]":
    """Run the command."""
    command = [sys.executable, str(ROOT / "heatsoak.py"), "probe", *arguments]
    return subprocess.run(
        command, env=environment or dict(os.environ), capture_output=True, text=True, timeout=90, check=False
    )


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Return an environment with places of its own and one busy card."""
    scenario = write_scenario(tmp_path / "busy.scenario", ["include h200", "process all compute pid 1 memory 4GiB"])
    own = {"HEATSOAK_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "c")}
    return {**fake_env(scenario), **own}


def test_busy_card_is_not_judged(environment: dict[str, str]) -> None:
    """Exit code 11, within the time given, with the reason for programs and people; 0 where that is allowed."""
    start_s = time.monotonic()
    done = probe("--quick", "--json", environment=environment)
    assert time.monotonic() - start_s < 20
    assert done.returncode == 11, done.stderr
    judged = json.loads(done.stdout)
    assert [(card["gpu"], card["spot"]["state"]) for card in judged["cards"]] == [(0, "unknown")]
    assert judged["cards"][0]["record"]["result"]["status"] == "skipped"
    assert probe("--quick", "--allow-unknown", environment=environment).returncode == 0


def test_named_probe_leaves_a_busy_card_alone(environment: dict[str, str]) -> None:
    """The table says why."""
    done = probe("matmul", "--gpu", "0", environment=environment)
    assert done.returncode == 11, done.stderr
    assert "skipped:" in done.stdout
    assert "\n-> run it again when the card is idle" in done.stdout


def test_unknown_card_is_a_usage_error(environment: dict[str, str]) -> None:
    """With the cards that there are."""
    done = probe("matmul", "--gpu", "7", environment=environment)
    assert done.returncode == 2
    assert "0 (GPU-" in done.stderr


@pytest.mark.parametrize("arguments", [("matmul",), ("--quick", "--within", "60")])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_a_word(
    tmp_path: Path, arguments: tuple[str, ...], number: signal.Signals, code: int
) -> None:
    """Long before the child's deadline, and with nothing on standard output that reads like a result."""
    stub = StubInterpreter(tmp_path, "long")
    environ = {**fake_env("h200"), **stub.settings(), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, str(ROOT / "heatsoak.py"), "probe", *arguments]
    running = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        time.sleep(3.0)
        running.send_signal(number)
        told, said = running.communicate(timeout=15)
    finally:
        running.kill()
        running.wait()
    assert (running.returncode, told, said) == (code, "", "heatsoak: interrupted\n")


@pytest.mark.tensorflow
def test_cpu_is_measured_where_asked(environment: dict[str, str]) -> None:
    """A real child, a real number, as JSON."""
    done = probe("matmul", "--device", "cpu", "--size", "256", "--json", environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = json.loads(done.stdout)["records"]
    assert record["uuid"] == "cpu"
    assert record["result"]["value"] > 1e8
    assert record["result"]["shape"] == "256x256x256"
