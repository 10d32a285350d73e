"""The service as `install.sh` leaves it, under a really booted systemd, with eight cards of the fake driver."""

import json
import time
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.agent import ROOT, eventually
from tests.support.machine import Machine
from tests.system.conftest import CONFIGURATION, INSTALLER

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

_UNIT = "heatsoak.service"
_DROP_IN = "/etc/systemd/system/heatsoak.service.d/test.conf"
_CONFIG = "/etc/heatsoak/heatsoak.toml"
_ALLOWED = {"write_state", "write_tmp", "see_processes", "see_host", "map_executable", "listen"}


@pytest.fixture
def service(installed: Machine) -> Iterator[Machine]:
    """Give the machine with its service as installed and running, whatever a test did to it before."""
    yield installed
    installed.run("systemctl", "disable", "--now", "heatsoak.socket", check=False)
    installed.run("systemctl", "stop", "squatter.service", check=False)
    installed.run("rm", "-rf", "/etc/systemd/system/heatsoak.service.d")
    installed.write(_CONFIG, CONFIGURATION)
    installed.run("systemctl", "daemon-reload")
    installed.run("systemctl", "reset-failed", _UNIT, check=False)
    installed.run("systemctl", "restart", _UNIT)


def _page(machine: Machine, path: str = "/metrics") -> str:
    return machine.run("curl", "-sf", "--max-time", "10", f"http://127.0.0.1:9838{path}", check=False).stdout


def _values(machine: Machine, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(_page(machine))
        for sample in family.samples
        if sample.name == name
    ]


def _racks(machine: Machine) -> list[str]:
    return [labels["rack"] for labels, _ in _values(machine, "heatsoak_node_info")]


def _pid(machine: Machine) -> int:
    return int(machine.unit(_UNIT, "MainPID")["MainPID"])


def _active(machine: Machine) -> bool:
    return machine.unit(_UNIT, "ActiveState", "SubState") == {"ActiveState": "active", "SubState": "running"}


def _restart(machine: Machine) -> None:
    ended = machine.run("systemctl", "restart", _UNIT, check=False)
    assert ended.returncode == 0, "\n".join(machine.journal(_UNIT)[-30:])


def _drop_in(machine: Machine, *lines: str) -> None:
    machine.write(_DROP_IN, "\n".join(["[Service]", *lines, ""]))
    machine.run("systemctl", "daemon-reload")


def test_it_is_ready_and_serves_eight_cards(service: Machine) -> None:
    """Started means ready: the status names the address, /readyz answers, all cards are on the page."""
    assert _active(service)
    assert service.unit(_UNIT, "StatusText")["StatusText"] == "serving on [::]:9838"
    eventually(lambda: len(_values(service, "heatsoak_gpu_temperature_celsius")) == 8, "eight cards")
    assert service.run("curl", "-sSf", "http://127.0.0.1:9838/readyz").returncode == 0
    assert service.run("systemctl", "is-enabled", _UNIT).stdout.strip() == "enabled"


def test_agent_and_reader_run_as_their_own_user_without_privileges(service: Machine) -> None:
    """Both processes: user heatsoak, no capability in any set, no new privileges, a system call filter."""
    uid = service.output("id", "-u", "heatsoak")
    assert uid != "0"
    for pid in service.output("pgrep", "-u", "heatsoak").split():
        status = dict(line.split(":", 1) for line in service.output("cat", f"/proc/{pid}/status").splitlines())
        assert set(status["Uid"].split()) == {uid}
        assert {status[name].strip() for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert (status["NoNewPrivs"].strip(), status["Seccomp"].strip()) == ("1", "2")


def test_hardening_refuses_all_but_what_the_product_needs(service: Machine) -> None:
    """Tried from within the unit: its state, /tmp, the host's figures, code made at run time; nothing else."""
    service.run("install", "-m", "4755", "/usr/bin/id", "/opt/setuid-id")
    _drop_in(service, "ExecStartPost=/usr/bin/python3 -I /opt/inside/attempts.py")
    _restart(service)
    told = next(line for line in service.journal(_UNIT)[::-1] if line.startswith("ATTEMPTS "))
    outcome = json.loads(told.removeprefix("ATTEMPTS "))
    assert {name for name, worked in outcome.items() if worked} == _ALLOWED


def test_a_real_xla_matmul_succeeds_within_the_unit(service: Machine) -> None:
    """TensorFlow compiles with XLA and computes right under the unit's hardening."""
    _drop_in(service, "ExecStartPost=/opt/heatsoak/tensorflow/bin/python -I /opt/inside/xla_matmul.py")
    _restart(service)
    told = next(line for line in service.journal(_UNIT)[::-1] if line.startswith("MATMUL "))
    assert json.loads(told.removeprefix("MATMUL ")) == {"compiled": True, "right": True}


def test_a_scheduled_probe_runs_within_the_unit(service: Machine) -> None:
    """The agent's own child finds TensorFlow in its own environment, and the page holds what it measured."""
    service.write(_CONFIG, CONFIGURATION.replace("enabled = false", "enabled = true\nfirst_delay_s = 0.5"))
    _restart(service)
    found = eventually(lambda: _values(service, "heatsoak_probe_matmul_flops_per_second"), "the probe", 120.0)
    assert found[0][0]["device"] == "cpu"
    assert found[0][1] > 1e8


def test_the_command_measures_what_the_service_measures(service: Machine) -> None:
    """`heatsoak probe`, as every runbook asks root to run it, finds the TensorFlow that the installer made."""
    told = service.output("heatsoak", "probe", "matmul", "--device", "cpu", "--seconds", "0.2", "--json")
    (record,) = json.loads(told)["records"]
    assert record["result"]["status"] == "ok"


def test_without_the_hosts_pids_cards_are_not_probed_and_the_reason_is_told(service: Machine) -> None:
    """The machine has a pid namespace of its own: each probe of a card is skipped for no_host_pid, none runs."""
    config = CONFIGURATION.replace("enabled = false", "enabled = true\nfirst_delay_s = 0.5").replace('"cpu"', '"gpu"')
    service.write(_CONFIG, config)
    _restart(service)

    def counted() -> dict[tuple[str, str], float]:
        rows = _values(service, "heatsoak_probe_runs_total")
        return {(labels["status"], labels["reason"]): value for labels, value in rows if value > 0}

    assert eventually(lambda: counted(), "the first runs").keys() == {("skipped", "no_host_pid")}


def test_a_killed_agent_is_back(service: Machine) -> None:
    """After kill -9 another process serves within seconds, and systemd has counted one restart."""
    before = _pid(service)
    service.run("kill", "-9", str(before))
    eventually(lambda: _active(service) and _pid(service) != before, "the new agent")
    assert service.unit(_UNIT, "NRestarts")["NRestarts"] == "1"
    eventually(lambda: _values(service, "heatsoak_nvml_up") == [({}, 1.0)], "its page")


def test_a_frozen_agent_is_replaced_by_the_watchdog(service: Machine) -> None:
    """An agent that is stopped feeds no watchdog: it is ended and another one serves."""
    assert service.unit(_UNIT, "WatchdogUSec")["WatchdogUSec"] == "30s"
    _drop_in(service, "WatchdogSec=2", "RestartSec=0.5")
    _restart(service)
    before = _pid(service)
    service.run("kill", "-STOP", str(before))
    eventually(lambda: _active(service) and _pid(service) != before, "the new agent")
    assert any("watchdog" in line.lower() for line in service.journal(_UNIT))


def test_reload_takes_a_good_configuration_over_and_refuses_a_bad_one(service: Machine) -> None:
    """`systemctl reload` changes the page within a tick or two, in the same process; a wrong file changes nothing."""
    before = _pid(service)
    service.write(_CONFIG, f'{CONFIGURATION}[node]\nrack = "r7"\n')
    service.run("systemctl", "reload", _UNIT)
    eventually(lambda: _racks(service) == ["r7"], "the new rack")
    assert service.unit(_UNIT, "StatusText")["StatusText"] == "serving on [::]:9838"
    service.write(_CONFIG, f"{CONFIGURATION}[node]\nrack = 7\n")
    service.run("systemctl", "reload", _UNIT)
    eventually(lambda: any('"reload_refused"' in line for line in service.journal(_UNIT)), "the refusal")
    assert _active(service)
    assert _pid(service) == before
    assert _racks(service) == ["r7"]


def test_a_wrong_configuration_is_not_tried_again_and_starts_at_once_when_right(service: Machine) -> None:
    """Exit 2 stays down, with file, line and key in the journal; the next start is not locked out."""
    _drop_in(service, "RestartSec=0.2")
    service.write(_CONFIG, '[node]\nrak = "r7"\n')
    assert service.run("systemctl", "restart", _UNIT, check=False).returncode != 0
    time.sleep(1.5)
    state = service.unit(_UNIT, "ActiveState", "ExecMainStatus", "NRestarts")
    assert state == {"ActiveState": "failed", "ExecMainStatus": "2", "NRestarts": "0"}
    assert any(f"{_CONFIG}:2: node.rak" in line for line in service.journal(_UNIT))
    service.write(_CONFIG, CONFIGURATION)
    service.run("systemctl", "start", _UNIT)
    assert _active(service)


def test_a_taken_port_is_told_and_tried_again_without_lock_out(service: Machine) -> None:
    """Exit 3 and one line that names the port; however often it failed, it serves once the port is free."""
    _drop_in(service, "RestartSec=0.1")
    service.run("systemctl", "stop", _UNIT)
    service.run(
        "systemd-run", "--unit=squatter", "--collect", "/usr/bin/python3", "-c",
        "import socket, time; s = socket.create_server(('', 9838)); time.sleep(600)",
    )  # fmt: skip
    eventually(lambda: "9838" in service.run("ss", "-ltn", check=False).stdout, "the squatter")
    assert service.run("systemctl", "start", _UNIT, check=False).returncode != 0
    eventually(lambda: int(service.unit(_UNIT, "NRestarts")["NRestarts"]) > 6, "more tries than the usual limit")
    assert any(line.endswith("cannot listen on [::]:9838: Address already in use") for line in service.journal(_UNIT))
    assert any("status=3/" in line for line in service.journal(_UNIT))
    service.run("systemctl", "stop", "squatter")
    eventually(lambda: _active(service), "the agent")


def test_with_the_socket_unit_no_scrape_is_lost_while_the_agent_restarts(service: Machine) -> None:
    """The port stays open: a scrape sent while the agent is down is answered by the one that comes."""
    service.run("systemctl", "stop", _UNIT)
    service.run("systemctl", "enable", "--now", "heatsoak.socket")
    assert _page(service, "/livez")
    eventually(lambda: _active(service), "the word that it is ready, which follows its first answer")
    assert service.unit(_UNIT, "StatusText")["StatusText"] == "serving on [::]:9838"


def test_what_root_pauses_stays_paused_over_a_restart(service: Machine) -> None:
    """The command finds the service's socket by itself, and state outlives the process."""
    eventually(lambda: _values(service, "heatsoak_gpu_info"), "the cards")
    service.run("heatsoak", "pause", "--gpu", "5", "--for", "1h")
    _restart(service)

    def paused() -> list[str]:
        rows = _values(service, "heatsoak_card_state")
        return [labels["gpu"] for labels, value in rows if value and labels["state"] == "maintenance"]

    assert eventually(paused, "the state") == ["5"]
    service.run("heatsoak", "resume")


def test_device_files_are_made_by_root_before_the_agent_starts(service: Machine) -> None:
    """Where nvidia-modprobe is, it is run as root for modules and nodes, and a failing one hinders nothing."""
    service.write("/usr/bin/nvidia-modprobe", '#!/bin/sh\necho "$(id -u) $*" >>/run/modprobe.log\nexit 1\n')
    service.run("chmod", "755", "/usr/bin/nvidia-modprobe")
    _restart(service)
    assert _active(service)
    assert service.output("cat", "/run/modprobe.log").splitlines() == ["0 ", "0 -u -c 0"]
    service.run("rm", "/usr/bin/nvidia-modprobe", "/run/modprobe.log")


def test_monitors_get_their_answers_from_the_service(service: Machine) -> None:
    """The commands of the Nagios and node-problem-detector examples, as those monitors would run them."""
    eventually(lambda: _values(service, "heatsoak_card_state"), "the first verdicts")
    nrpe = (ROOT / "deploy" / "nagios" / "nrpe.cfg").read_text(encoding="utf-8").partition("]=")[2].split()
    plugin = service.run(*nrpe, check=False)
    assert plugin.returncode == 3  # eight cards that no probe has judged yet
    assert plugin.stdout.startswith("HEATSOAK UNKNOWN - GPU 0,1,2,3,4,5,6,7 unknown")
    monitor = json.loads((ROOT / "deploy" / "node-problem-detector" / "heatsoak.json").read_text(encoding="utf-8"))
    (rule,) = monitor["rules"]
    problem = service.run(rule["path"], *rule["args"], check=False)
    assert problem.returncode == 2
    assert 0 < len(problem.stdout.strip()) <= monitor["pluginConfig"]["max_output_length"]
    assert {condition["type"] for condition in monitor["conditions"]} == {rule["condition"]}


def test_systemd_finds_nothing_wrong_and_little_exposed(service: Machine) -> None:
    """`systemd-analyze verify` is silent; exposure is at most 2.0 (1.7 as written: cards, pids, network, XLA)."""
    verified = service.run("systemd-analyze", "verify", _UNIT, "heatsoak.socket", "heatsoak-devices.service")
    assert (verified.stdout, verified.stderr) == ("", "")
    service.run("systemd-analyze", "security", "--threshold=20", _UNIT)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("install", "--wheels"), "--wheels needs a value"),
        (("install", "--wheels", "/nowhere"), "/nowhere is no directory"),
        (("install", "--python", "/root/bin/python3"), "--python"),
        (("install", "--color"), "--color is no option"),
        (("install", "--tensorflow", "tpu"), "--tensorflow is tpu; it must be gpu, cpu, none or an absolute path"),
        (("install", "--tensorflow", "/opt"), "/opt is no program"),
        (("rollback",), "there is no earlier agent"),
        (("rollback", "now"), "rollback takes no now"),
        (("uninstall", "--prge"), "--prge is no option of uninstall"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(installed: Machine, arguments: tuple[str, ...], told: str) -> None:
    """Exit 2, one line that names the fault, and the service untouched."""
    pid, releases = installed.unit("heatsoak.service", "MainPID"), installed.output("ls", "/opt/heatsoak/releases")
    ended = installed.run(INSTALLER, *arguments, check=False)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert installed.unit("heatsoak.service", "MainPID") == pid
    assert installed.output("ls", "/opt/heatsoak/releases") == releases
