"""Cases 4 to 7, 12, 13, 15, 16: readings missing or mad, cards lost or missing, churn, labels, throttling, events."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.agent import AgentProcess, eventually, running_agent
from tests.support.shifted_clock import ShiftedClock
from tests.support.stub_interpreter import StubInterpreter
from tests.support.trees import make_tree
from tests.survival.story import FAST, Story, await_cards, await_ticks, check_metrics, complaints

TEMPERATURE = "heatsoak_gpu_temperature_celsius"
BUSY = "nvmlDeviceGetUtilizationRates = gpu=98 memory=40"


class TestCase04Unsupported:
    """One card of two does not offer a reading."""

    def test_series_is_absent_for_that_card_and_asked_for_again(self, tmp_path: Path) -> None:
        """No warning; the other card has it; after ten minutes it is asked for again and found."""
        story, clock = Story(tmp_path, "h200x2", f"card 1 {_TEMPERATURE_CALL} = NOT_SUPPORTED"), ShiftedClock(tmp_path)
        with running_agent(tmp_path, scenario=story.path, environ={**FAST, **clock.environ}) as agent:
            await_cards(agent, 1)
            assert agent.value(TEMPERATURE, gpu="1") is None
            assert agent.value("heatsoak_gpu_power_watts", gpu="1") is not None
            story.tell()
            await_ticks(agent, 20)
            assert agent.value(TEMPERATURE, gpu="1") is None, "asked again at once"
            assert complaints(agent) == []
            clock.pass_by(600.0)
            await_cards(agent, 2)

    @pytest.mark.parametrize("scenario", ["consumer", "mig"])
    def test_smaller_cards_are_served_without_a_complaint(self, tmp_path: Path, scenario: str) -> None:
        """A consumer card and one split by MIG give what they have."""
        with running_agent(tmp_path, scenario=scenario, environ=FAST) as agent:
            await_cards(agent, 1)
            await_ticks(agent, 20)
            assert complaints(agent) == []
            assert agent.value("heatsoak_collector_errors_total", collector="nvml", reason="call_failed") == 0.0


class TestCase05Garbage:
    """The driver answers what cannot be."""

    def test_what_cannot_be_is_dropped_and_counted(self, tmp_path: Path) -> None:
        """Absent, never served, no state changes; the same card's other readings go on."""
        story = Story(tmp_path, "h200x2")
        with running_agent(tmp_path, scenario=story.path, environ=FAST) as agent:
            await_cards(agent, 2)
            eventually(lambda: agent.state("card", gpu="0") == "ok", "a state to keep")
            story.tell(
                f"card 0 {_TEMPERATURE_CALL} = 644245923",
                "card 0 nvmlDeviceGetUtilizationRates = gpu=4294967295 memory=3",
                "card 0 nvmlDeviceGetMemoryInfo_v2 = total=150754820096 free=1 reserved=0 used=18446744073709551615",
            )
            for quantity in ("temperature_celsius", "utilization_ratio", "memory_used_bytes"):
                eventually(
                    lambda name=quantity: agent.value("heatsoak_nvml_values_dropped_total", quantity=name),  # type: ignore[misc]
                    f"the count of {quantity}",
                )
                assert agent.value(f"heatsoak_gpu_{quantity}", gpu="0") is None
            assert agent.value("heatsoak_gpu_power_watts", gpu="0") is not None
            assert agent.value(TEMPERATURE, gpu="1") is not None
            assert agent.state("card", gpu="0") == "ok"


class TestCase06CardLost:
    """A card falls off the bus, or needs a reset, while the agent runs."""

    @pytest.mark.parametrize("error", ["GPU_IS_LOST", "RESET_REQUIRED"])
    def test_the_others_do_not_notice(self, tmp_path: Path, error: str) -> None:
        """Its readings vanish, its identity stays, its probe is aborted; it is back after three good ticks."""
        story, stub = Story(tmp_path, "h200x2"), StubInterpreter(tmp_path, "long")
        environ = {**FAST, **stub.settings(), "HEATSOAK_PROBE_INTERVAL_S": "60"}
        with running_agent(tmp_path, scenario=story.path, environ=environ) as agent:
            await_cards(agent, 2)
            eventually(lambda: agent.value("heatsoak_probe_running") == 1.0, "a probe on the first card")
            story.tell(f"card 0 * = {error}")
            eventually(lambda: agent.state("card", gpu="0") == "lost", "the state")
            assert agent.value("heatsoak_gpu_lost", gpu="0") == 1.0
            assert agent.value(TEMPERATURE, gpu="0") is None
            assert agent.value("heatsoak_gpu_info", gpu="0") == 1.0
            assert agent.value(TEMPERATURE, gpu="1") is not None
            assert agent.value("heatsoak_nvml_up") == 1.0
            lost = {"probe": "matmul", "status": "aborted", "reason": "gpu_lost"}
            eventually(lambda: agent.value("heatsoak_probe_runs_total", **lost) == 1.0, "the aborted probe")
            story.tell()
            await_cards(agent, 2)
            eventually(lambda: agent.state("card", gpu="0") not in ("lost", ""), "the card's return")
            assert agent.state() == "ok"


class TestCase07CardsMissing:
    """Fewer cards than there should be, by each of the three who may know."""

    def test_by_configuration(self, tmp_path: Path) -> None:
        """Two expected, one there."""
        with running_agent(tmp_path, scenario="h200", environ={**FAST, "HEATSOAK_NODE_EXPECTED_GPUS": "2"}) as agent:
            finding = _missing(agent)
            assert finding["evidence"] == {"expected_gpus": 2.0, "present_gpus": 1.0}

    def test_by_the_pci_bus(self, tmp_path: Path) -> None:
        """The bus has a card that the driver does not list: it is named."""
        sys = tmp_path / "sys"
        for bus_id in ("0000:00:06.0", "0000:1b:00.0"):
            make_tree(sys / "bus/pci/devices" / bus_id, {"vendor": "0x10de\n", "class": "0x030200\n"})
        with running_agent(tmp_path, scenario="h200", environ={**FAST, "HEATSOAK_HOST_SYS_ROOT": str(sys)}) as agent:
            assert "0000:1b:00.0" in _missing(agent)["summary"]

    def test_by_the_inventory_of_the_run_before(self, tmp_path: Path) -> None:
        """A card that was here before the restart is named, without a series that says so by being absent."""
        story = Story(tmp_path, "h200x2")
        with running_agent(tmp_path, scenario=story.path, environ=FAST) as agent:
            await_cards(agent, 2)
            missing = next(each["pci_bus_id"] for each in agent.series("heatsoak_gpu_info") if each["gpu"] == "1")
            await_ticks(agent, 3)
            assert agent.stop() == 0
        story.tell("cards 1", "system nvmlDeviceGetCount_v2 = 1")
        with running_agent(tmp_path, scenario=story.path, environ=FAST) as agent:
            assert missing in _missing(agent)["summary"]


class TestCase12Churn:
    """Processes, network devices and disks come and go."""

    def test_series_are_as_many_after_a_thousand_ticks(self, tmp_path: Path) -> None:
        """500 processes with new ids all the time, none of them in /proc: no series of their own, none left over."""
        story = Story(tmp_path, "h200", "process all compute count 500 churn memory 1MiB")
        environ = {"SOAK_TICK_S": "0.005", "FAKE_NVML_SPEED": "20"}
        program = ("-m", "benchmarks.soak.agent")
        with running_agent(tmp_path, scenario=story.path, environ=environ, program=program) as agent:
            await_cards(agent)
            assert agent.value("heatsoak_gpu_processes", gpu="0") == 500.0
            eventually(lambda: agent.series("heatsoak_gpu_dram_active_ratio"), "what needs two slow readings")
            before = _series(agent)
            await_ticks(agent, 1000)
            assert _series(agent) ^ before == set()
            assert complaints(agent, "error") == []

    def test_devices_of_the_host_come_and_go(self, tmp_path: Path) -> None:
        """A network device that appears has series, one that goes has none."""
        proc = host_tree(tmp_path)
        rest = (proc / "net/dev").read_text()
        with running_agent(tmp_path, environ={**FAST, "HEATSOAK_HOST_PROC_ROOT": str(proc)}) as agent:
            name = "heatsoak_host_network_receive_bytes_total"
            eventually(lambda: agent.series(name), "the network")
            (proc / "net/dev").write_text(rest + "  new7: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n")
            eventually(lambda: agent.value(name, device="new7") == 5.0, "the new device")
            (proc / "net/dev").write_text(rest)
            eventually(lambda: agent.value(name, device="new7") is None, "its end")


class TestCase13HostileLabels:
    """Names from outside hold quotes, line ends, control characters, or do not end."""

    def test_page_stays_valid_and_nothing_reaches_html_unescaped(self, tmp_path: Path) -> None:
        """From the driver, the configuration and the kernel at once."""
        hostile = r"""a"b\c<script>alert(1)</script>{}""" + "x" * 300
        proc = host_tree(tmp_path)
        dev = (proc / "net/dev").read_text()
        (proc / "net/dev").write_bytes(dev.encode() + b' e"\\\xff\x01<b>: 5 1 0 0 0 0 0 0 6 1 0 0 0 0 0 0\n')
        story = Story(tmp_path, "h200", 'card 0 nvmlDeviceGetName = "H<script>200 \x01 ' + "y" * 60 + '"')
        text = f"[node]\nrack = '{hostile}'\nposition = '<img src=x>'\n"
        environ = {**FAST, "HEATSOAK_HOST_PROC_ROOT": str(proc)}
        with running_agent(tmp_path, scenario=story.path, config=text, environ=environ) as agent:
            await_cards(agent)
            (node,) = agent.series("heatsoak_node_info")
            (card,) = agent.series("heatsoak_gpu_info")
            devices = [each["device"] for each in agent.series("heatsoak_host_network_receive_bytes_total")]
            check_metrics(agent.get("/metrics")[1])
            html = agent.get("/")[1]
        labels = [*node.values(), *card.values(), *devices]
        assert all(label.isprintable() and len(label) <= 128 for label in labels), labels
        assert '"' in node["rack"]
        assert any(device.startswith('e"\\') for device in devices)
        assert not [text for text in ("<script>alert", "<script>200", "<img src=x", "<b>:") if text in html]
        assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", html)


class TestCase15ThrottleReasons:
    """Why clocks are held down, by its own word; only what is a fault changes a state."""

    REASONS = (
        ("nvmlClocksThrottleReasonHwThermalSlowdown", "hw_thermal", "throttled"),
        ("nvmlClocksEventReasonSyncBoost", "sync_boost", "ok"),
        ("nvmlClocksEventReasonSwPowerCap", "sw_power_cap", "ok"),
        ("nvmlClocksThrottleReasonDisplayClockSetting", "display_clocks", "ok"),
        ("nvmlClocksEventReasonApplicationsClocksSetting", "applications_clocks", "ok"),
        ("nvmlClocksThrottleReasonHwPowerBrakeSlowdown", "hw_power_brake", "throttled"),
    )

    @pytest.mark.parametrize("old_names", [False, True], ids=["new symbol", "old symbol"])
    def test_reasons_are_told_apart(self, tmp_path: Path, *, old_names: bool) -> None:
        """Six busy cards, each held down by another reason, under the new name of the call and under the old one."""
        function = "nvmlDeviceGetCurrentClocks" + ("ThrottleReasons" if old_names else "EventReasons")
        lines = ["cards 6", *(f"card {index} {BUSY}" for index in range(6))]
        lines += [f"card {index} {function} = {flag}" for index, (flag, _, _) in enumerate(self.REASONS)]
        if old_names:
            lines.append("card all nvmlDeviceGetCurrentClocksEventReasons = FUNCTION_NOT_FOUND")
        environ = {"HEATSOAK_AGENT_TICK_S": "0.5", "HEATSOAK_VERDICTS_THROTTLE_WINDOW_S": "5"}
        with running_agent(tmp_path, scenario=Story(tmp_path, "eight", *lines).path, environ=environ) as agent:
            await_cards(agent, 6)
            for index, (_, reason, _) in enumerate(self.REASONS):
                active = {
                    labels["reason"]
                    for labels, value in _labelled(agent, "heatsoak_gpu_throttle_active", gpu=str(index))
                    if value
                }
                assert active == {reason}
            for index, (_, _, state) in enumerate(self.REASONS):
                eventually(lambda gpu=str(index): agent.state("card", gpu=gpu) != "unknown", "a judgement")  # type: ignore[misc]
                if state == "throttled":
                    eventually(lambda gpu=str(index): agent.state("card", gpu=gpu) == "throttled", "the state")  # type: ignore[misc]
            states = {index: agent.state("card", gpu=str(index)) for index in range(6)}
            assert states == {index: state for index, (_, _, state) in enumerate(self.REASONS)}


class TestCase16EventsAreNoStates:
    """An XID is counted and dated; the card is judged anew each tick."""

    def test_counter_stays_and_the_card_recovers(self, tmp_path: Path) -> None:
        """Lost with XID 79: when the card is back it is no longer lost, and its event is still counted, once."""
        story = Story(tmp_path, "h200x2")
        with running_agent(tmp_path, scenario=story.path, environ=FAST) as agent:
            await_cards(agent, 2)
            assert agent.value("heatsoak_gpu_xid_events_total", gpu="1") == 0.0
            assert agent.value("heatsoak_gpu_xid_last_code", gpu="1") is None
            story.tell("event 1 xid 31", "card 1 nvmlDeviceGetMemoryInfo* = GPU_IS_LOST")
            eventually(lambda: agent.events("gpu_xid"), "the event")
            eventually(lambda: agent.state("card", gpu="1") == "lost", "the state")
            story.tell()
            await_cards(agent, 2)
            eventually(lambda: agent.state("card", gpu="1") != "lost", "the recovery")
            assert agent.value("heatsoak_gpu_xid_events_total", gpu="1") == 1.0
            assert agent.value("heatsoak_gpu_xid_events_total", gpu="0") == 0.0

    def test_what_cannot_be_read_is_absent(self, tmp_path: Path) -> None:
        """A driver that reports no events has no counter of them that stands at 0."""
        story = Story(tmp_path, "h200", "card all nvmlDeviceRegisterEvents = NOT_SUPPORTED")
        with running_agent(tmp_path, scenario=story.path, environ=FAST) as agent:
            await_cards(agent)
            assert agent.value("heatsoak_gpu_xid_events_total", gpu="0") is None


_TEMPERATURE_CALL = "nvmlDeviceGetTemperature NVML_TEMPERATURE_GPU"


def host_tree(directory: Path) -> Path:
    """Return a copy of what the agent reads of this machine's /proc, to be changed by a test."""
    names = ("stat", "loadavg", "meminfo", "vmstat", "diskstats", "net/dev", "cpuinfo", "sys/kernel/osrelease")
    pressure = tuple(f"pressure/{name}" for name in ("cpu", "io", "memory"))
    found = {name: Path("/proc", name).read_bytes() for name in (*names, *pressure) if Path("/proc", name).exists()}
    make_tree(directory / "proc", found)
    return directory / "proc"


def _missing(agent: AgentProcess) -> dict[str, Any]:
    eventually(lambda: agent.state() == "gpu_missing", "the node's state")
    (finding,) = agent.status()["node"]["findings"]
    return dict(finding)


def _series(agent: AgentProcess) -> set[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return every series but those of verdicts, which come and go with what they say."""
    found = agent.metrics().items()
    return {(name, key) for name, series in found if not name.startswith("heatsoak_verdict_") for key in series}


def _labelled(agent: AgentProcess, metric: str, **labels: str) -> list[tuple[dict[str, str], float]]:
    found = [(dict(key), value) for key, value in agent.metrics().get(metric, {}).items()]
    return [(key, value) for key, value in found if labels.items() <= key.items()]
