"""The real agent: starting, serving, stopping."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.agent import ROOT, alive, eventually, running_agent

_FAST = {"HEATSOAK_AGENT_TICK_S": "0.1"}


def test_a_card_is_on_the_page_within_a_few_ticks(tmp_path: Path) -> None:
    """The scenario's card appears with its readings, and promtool finds nothing to complain of."""
    with running_agent(tmp_path, scenario="h200", environ=_FAST) as agent:
        eventually(lambda: agent.value("heatsoak_gpu_temperature_celsius", gpu="0") == 34.0, "the card's temperature")
        assert agent.value("heatsoak_nvml_up") == 1.0
        assert agent.value("heatsoak_gpu_info", name="NVIDIA H200") == 1.0
        page = agent.get("/metrics")[1]
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=30, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")


def test_without_a_driver_the_host_is_served_and_one_warning_written(tmp_path: Path) -> None:
    """No libnvidia-ml: up, live, ready, host metrics, and one line that names the likely cause."""
    with running_agent(tmp_path, environ={**_FAST, "HEATSOAK_NVML_LIBRARY": "/nonexistent/libnvidia-ml.so.1"}) as agent:
        eventually(lambda: agent.events("nvml_down"), "the warning")
        eventually(lambda: (agent.value("heatsoak_ticks_total") or 0) > 20, "some ticks")
        assert agent.value("heatsoak_nvml_up") == 0.0
        assert agent.value("heatsoak_host_cpu_seconds_total", mode="user") is not None
        assert [agent.get(path)[0] for path in ("/livez", "/readyz", "/", "/api/v1/status")] == [200] * 4
        warnings = [entry for entry in agent.log if entry.get("level") in ("warning", "error")]
    assert [entry["event"] for entry in warnings] == ["nvml_down"]
    assert "libnvidia-ml.so.1" in warnings[0]["likely_cause"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_0_and_without_children(tmp_path: Path, number: int) -> None:
    """SIGTERM and SIGINT: exit 0 within 5 s, the reader child gone."""
    with running_agent(tmp_path, scenario="h200") as agent:
        children = eventually(agent.children, "the reader child")
        begun_s = time.monotonic()
        assert agent.stop(number) == 0
        assert time.monotonic() - begun_s < 5.0
        assert not any(alive(pid) for pid in children)


def test_a_second_signal_changes_nothing(tmp_path: Path) -> None:
    """SIGTERM twice in a row still ends in exit 0."""
    with running_agent(tmp_path, scenario="h200") as agent:
        agent.process.send_signal(signal.SIGTERM)
        assert agent.stop(signal.SIGTERM) == 0


def test_a_signal_during_the_first_tick_is_not_lost(tmp_path: Path) -> None:
    """A SIGTERM right after the start line, while a slow driver is still being initialised, ends it."""
    with running_agent(tmp_path, scenario="slow") as agent:
        assert agent.stop() == 0


def test_a_taken_port_is_one_line_and_exit_3(tmp_path: Path) -> None:
    """The address in use is named, nothing else is said, and the exit code tells."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(
            [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(tmp_path), "run"],
            env={"PATH": "/usr/bin:/bin", "HEATSOAK_WEB_LISTEN": f"127.0.0.1:{port}"},
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert ended.returncode == 3
    assert ended.stderr.splitlines() == [f"heatsoak: cannot listen on 127.0.0.1:{port}: Address already in use"]


def test_an_unknown_key_is_exit_2_with_file_key_and_the_nearest_name(tmp_path: Path) -> None:
    """A misspelt key names its file and line and what was probably meant."""
    path = tmp_path / "heatsoak.toml"
    path.write_text('[node]\nrak = "r1"\n')
    ended = subprocess.run(
        [sys.executable, str(ROOT / "heatsoak.py"), "--config", str(path), "run"],
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert f"{path}:2: node.rak" in ended.stderr
    assert "did you mean rack?" in ended.stderr


def test_sighup_takes_over_a_good_configuration_and_refuses_a_bad_one(tmp_path: Path) -> None:
    """Rack and position change without a restart; a broken file changes nothing and is logged."""
    with running_agent(tmp_path, environ=_FAST) as agent:
        agent.config_path.write_text('[node]\nrack = "r7"\n')
        agent.process.send_signal(signal.SIGHUP)
        eventually(lambda: agent.value("heatsoak_node_info", rack="r7"), "the new rack")
        agent.config_path.write_text("[node]\nrack = 7\n")
        agent.process.send_signal(signal.SIGHUP)
        refused = eventually(lambda: agent.events("reload_refused"), "the refusal")
        assert "node.rack" in refused[0]["faults"][0]
        assert agent.value("heatsoak_node_info", rack="r7") == 1.0


def test_a_reload_follows_no_setting_that_needs_a_restart(tmp_path: Path) -> None:
    """Another root of /proc is announced, each time, and nothing reads it: the host's readings go on."""
    with running_agent(tmp_path, environ=_FAST) as agent:
        eventually(lambda: agent.value("heatsoak_host_boot_time_seconds"), "a reading of the host")
        agent.config_path.write_text(f'[node]\nrack = "r7"\n[host]\nproc_root = "{tmp_path}"\n')
        agent.process.send_signal(signal.SIGHUP)
        eventually(lambda: agent.value("heatsoak_node_info", rack="r7"), "the new rack")
        agent.process.send_signal(signal.SIGHUP)
        told = eventually(lambda: agent.events("setting_needs_restart")[1:], "the second announcement")
        assert told[0]["setting"] == "host.proc_root"
        assert agent.value("heatsoak_host_boot_time_seconds")


def test_the_agent_loads_neither_pynvml_nor_tensorflow(tmp_path: Path) -> None:
    """What hangs or is large stays in the children: the agent's own process maps no file of either."""
    with running_agent(tmp_path, scenario="h200") as agent:
        eventually(lambda: agent.value("heatsoak_nvml_up") == 1.0, "the driver")
        maps = Path(f"/proc/{agent.pid}/maps").read_text()
    assert "libnvidia-ml" not in maps
    assert "tensorflow" not in maps


def test_pause_lets_go_of_the_driver_and_resume_takes_it_up(tmp_path: Path) -> None:
    """All cards paused: the reader child ends and the state is maintenance; resumed: the card is back."""

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(agent.state_dir), *words],
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip

    with running_agent(tmp_path, scenario="h200", environ=_FAST) as agent:
        eventually(lambda: agent.value("heatsoak_nvml_up") == 1.0, "the driver")
        paused = command("pause", "--for", "1h")
        assert (paused.returncode, paused.stdout.startswith("paused: GPU-")) == (0, True), paused.stderr
        eventually(lambda: not agent.children(), "the end of the reader child")
        eventually(lambda: agent.value("heatsoak_card_state", state="maintenance") == 1.0, "the state")
        assert command("resume").returncode == 0
        eventually(lambda: agent.value("heatsoak_gpu_temperature_celsius", gpu="0") == 34.0, "the card again")
        wrong = command("pause", "--gpu", "9")
    assert wrong.returncode == 2
    assert "'9'" in wrong.stderr
    assert "GPU-" in wrong.stderr


def test_check_learns_the_address_from_the_agent_of_the_state_directory(tmp_path: Path) -> None:
    """Also where the kernel chose the port; without an agent there it goes by the configuration."""

    def check(directory: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(directory), "check", "--allow-unknown"],
            env={"PATH": "/usr/bin:/bin", "HEATSOAK_WEB_LISTEN": "127.0.0.1:1"},
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip

    with running_agent(tmp_path, scenario="h200", environ=_FAST) as agent:
        eventually(lambda: agent.value("heatsoak_nvml_up") == 1.0, "the driver")
        found = check(agent.state_dir)
        lost = check(tmp_path / "elsewhere")
    assert (found.returncode, found.stdout.startswith("GPU 0 NVIDIA H200")) == (0, True), found.stderr
    assert lost.returncode == 11
    assert "no agent answers at http://127.0.0.1:1" in lost.stderr


def test_pause_without_a_card_says_that_there_is_none(tmp_path: Path) -> None:
    """One plain sentence."""
    command = [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir"]
    with running_agent(tmp_path, environ=_FAST) as agent:
        eventually(lambda: agent.value("heatsoak_nvml_up") == 0.0, "the first tick")
        for word in ("pause", "resume"):
            done = subprocess.run(
                [*command, str(agent.state_dir), word], capture_output=True, text=True, timeout=30, check=False
            )
            assert done.returncode == 2
            assert done.stderr.endswith(f": no card is known here, so there is none to {word}\n")


def test_a_second_agent_on_the_same_state_directory_refuses(tmp_path: Path) -> None:
    """Two agents would fight over the history: the second ends with one line that names the first."""
    with running_agent(tmp_path) as agent:
        other = subprocess.run(
            [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(agent.state_dir), "run"],
            env={"PATH": "/usr/bin:/bin", "HEATSOAK_WEB_LISTEN": "127.0.0.1:0"},
            capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    assert other.returncode == 2
    assert str(agent.pid) in other.stderr.splitlines()[-1]
