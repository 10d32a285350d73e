"""The real reader child, asked by the real client, on a fake NVML that lives a scenario."""

import functools
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from agent.clock import SystemClock
from agent.config.settings import NvmlSettings
from agent.nvml.client import ReaderClient
from agent.nvml.process import ReaderProcess
from agent.nvml.protocol import (
    Command,
    Done,
    Event,
    Failed,
    LineBuffer,
    Read,
    Ready,
    Start,
    Values,
    decode_event,
    encode,
)
from agent.nvml.source import GpuReading
from tests.support.fakenvml import fake_env, write_scenario

TICK_S = 0.05
QUICK = NvmlSettings(read_deadline_s=0.4)


class Rig:
    """A client on a scenario, ticking twenty times a second."""

    def __init__(self, scenario: str | Path, settings: NvmlSettings, speed: float) -> None:
        environ = fake_env(scenario, epoch=time.monotonic(), speed=speed)
        self.client = ReaderClient(settings, SystemClock(), functools.partial(ReaderProcess, environ))

    def tick(self) -> GpuReading:
        """Run one tick at its full length."""
        start_s = time.monotonic()
        self.client.begin_tick()
        reading = self.client.end_tick(start_s + TICK_S)
        time.sleep(max(0.0, start_s + TICK_S - time.monotonic()))
        return reading

    def until(self, condition: Callable[[GpuReading], bool], most_s: float = 10.0) -> GpuReading:
        """Tick until ``condition`` holds; return the reading that met it."""
        end_s = time.monotonic() + most_s
        reading = self.tick()
        while not condition(reading):
            assert time.monotonic() < end_s, f"not within {most_s} s: {reading}"
            reading = self.tick()
        return reading

    def up(self) -> GpuReading:
        """Tick until the cards are there."""
        return self.until(lambda reading: reading.nvml.up and bool(reading.cards) and bool(reading.cards[-1].values))


@contextmanager
def rig(scenario: str | Path, settings: NvmlSettings = QUICK, speed: float = 1.0) -> Iterator[Rig]:
    """Run a client on a scenario; no child is left when it closes."""
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    running = Rig(scenario, settings, speed)
    try:
        yield running
    finally:
        running.client.close(2.0)
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert left == []


def readers() -> list[psutil.Process]:
    """Return the reader children of this process."""
    return [child for child in psutil.Process().children() if "agent.nvml.reader" in child.cmdline()]


def test_h200_serves_what_the_card_says() -> None:
    """The recorded card's figures arrive in their units; what it does not offer is absent."""
    with rig("h200") as running:
        reading = running.up()
        reading = running.until(lambda reading: "power_peak_watts" in reading.cards[0].values)
    card = reading.cards[0]
    expected = {
        "memory_total_bytes": 150754820096,
        "temperature_celsius": 34,
        "memory_temperature_celsius": 33,
        "power_watts": 80.17,
        "power_limit_enforced_watts": 700,
        "power_limit_min_watts": 200,
        "clock_sm_hertz": 345e6,
        "clock_max_sm_hertz": 1980e6,
        "temperature_threshold_slowdown_celsius": 89,
        "pcie_generation": 5,
        "pcie_width_lanes": 16,
        "throttle_active_gpu_idle": 1,
        "throttle_seconds_hw_thermal": 0,
        "ecc_enabled": 1,
        "xid_events_total": 0,
        "processes": 0,
    }
    assert {key: card.values.get(key) for key in expected} == expected
    absent = {"fan_speed_ratio", "retired_pages_single_bit", "nvlink_active_links", "fabric_state"}
    assert absent & set(card.values) == set()
    assert card.identity.uuid == "GPU-00000000-0000-4000-8000-000000000001"
    assert (card.identity.pci_bus_id, card.identity.compute_capability) == ("0000:00:06.0", "9.0")
    assert (reading.nvml.driver, dict(reading.nvml.dropped)) == ("580.159.04", {})
    assert reading.health.errors["call_failed"] == 0


def converse(scenario: str | Path, commands: Sequence[Command]) -> list[Event]:
    """Give a reader these commands, wait for what each owes, and return all it said."""
    child = ReaderProcess(fake_env(scenario))
    lines, said, answered = LineBuffer(), list[Event](), 0
    for command in commands:
        child.send(encode(command))
        while len(said) == answered or not isinstance(said[-1], Ready | Done | Failed):
            said += [decode_event(line) for line in lines.feed(child.receive(10.0) or b"")]
        answered = len(said)
    child.kill()
    child.gone(2.0)
    child.close()
    return said


def test_gpm_activity_needs_two_readings() -> None:
    """GPM measures between two samples: the first reading has none, the second has tensor and DRAM activity."""
    said = converse("h200", [Start(), Read(1, ("slow",)), Read(2, ("slow",))])
    first, second = (event.values for event in said if isinstance(event, Values))
    assert "tensor_active_ratio" not in first
    assert 0 <= (second["dram_active_ratio"] or 0) <= 100
    assert second["tensor_active_ratio"] == 0


def test_unsupported_reading_is_asked_again_with_the_static_tier(tmp_path: Path) -> None:
    """A reading that was refused is not asked again each tick, and is found once it is offered."""
    path = write_scenario(
        tmp_path / "late.scenario",
        ["include h200", "card 0 nvmlDeviceGetFanSpeed = calls NOT_SUPPORTED | 40"],
    )
    said = converse(path, [Start(), Read(1, ("fast",)), Read(2, ("fast",)), Read(3, ("fast", "static"))])
    fans = [event.values.get("fan_speed_ratio") for event in said if isinstance(event, Values)]
    assert fans == [None, None, 40]


def test_every_distinct_call_is_made_once_in_a_sweep(tmp_path: Path) -> None:
    """Rows that share a driver call share its answer."""
    path = write_scenario(
        tmp_path / "once.scenario",
        [
            "include h200",
            "card 0 nvmlDeviceGetUtilizationRates = calls gpu=1 memory=1 | gpu=2 memory=2 | gpu=3 memory=3",
        ],
    )
    said = converse(path, [Start(), Read(1, ("fast",)), Read(2, ("fast",))])
    pairs = [
        (event.values["utilization_ratio"], event.values["memory_utilization_ratio"])
        for event in said
        if isinstance(event, Values)
    ]
    assert pairs == [(1, 1), (2, 2)]


def test_nvlink_and_fabric_where_they_are(tmp_path: Path) -> None:
    """Errors are summed over the links that answer; the fabric tells state, result and health."""
    path = write_scenario(
        tmp_path / "nvlink.scenario",
        [
            "include h200",
            "card 0 field NVML_FI_DEV_NVLINK_GET_STATE 0 = 1",
            "card 0 field NVML_FI_DEV_NVLINK_GET_STATE 1 = 1",
            "card 0 field NVML_FI_DEV_NVLINK_GET_STATE 2 = 0",
            "card 0 field NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY 0 = 3",
            "card 0 field NVML_FI_DEV_NVLINK_ERROR_DL_REPLAY 17 = 4",
            "card 0 field NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL = 9",
            "card 0 nvmlDeviceGetGpuFabricInfoV = state=3 status=0 healthSummary=1",
        ],
    )
    with rig(path) as running:
        values = running.up().cards[0].values
    expected = {
        "nvlink_active_links": 2,
        "nvlink_errors_replay": 7,
        "nvlink_errors_crc": 9,
        "fabric_state": 3,
        "fabric_status": 0,
        "fabric_health": 1,
    }
    assert {key: values.get(key) for key in expected} == expected
    assert "nvlink_errors_recovery" not in values


def test_consumer_card_has_fewer_readings_and_no_complaint() -> None:
    """What a card does not offer is absent for it alone, without a failed call."""
    with rig("consumer") as running:
        reading = running.up()
    values = reading.cards[0].values
    assert {"temperature_celsius", "fan_speed_ratio", "memory_used_bytes", "utilization_ratio"} <= set(values)
    assert {"ecc_errors_corrected_volatile", "remapped_rows_correctable", "energy_joules_total"} & set(values) == set()
    assert reading.health.errors["call_failed"] == 0


def test_throttle_reasons_under_old_names(tmp_path: Path) -> None:
    """An old driver without the new symbol gives the same reasons; time is then sampled and says so."""
    path = write_scenario(
        tmp_path / "old.scenario",
        """
include h200
card 0 nvmlDeviceGetCurrentClocksEventReasons = FUNCTION_NOT_FOUND
card 0 nvmlDeviceGetCurrentClocksThrottleReasons = nvmlClocksThrottleReasonHwThermalSlowdown
card 0 nvmlDeviceGetUtilizationRates = gpu=90 memory=10
card 0 nvmlDeviceGetFieldValues = FUNCTION_NOT_FOUND
card 0 field * = NOT_SUPPORTED
card 0 nvmlDeviceGetViolationStatus NVML_PERF_POLICY_POWER = referenceTime=now_us violationTime=5000000000
""",
    )
    with rig(path) as running:
        running.up()
        reading = running.until(
            lambda reading: reading.cards[0].values.get("throttle_busy_seconds_hw_thermal", 0) > 0.3
        )
    values = reading.cards[0].values
    assert (values["throttle_active_hw_thermal"], values["throttle_active_gpu_idle"]) == (1, 0)
    assert values["throttle_seconds_sw_power_cap"] == 5
    assert "throttle_seconds_sw_power_cap_sampled" not in values
    assert values["throttle_seconds_hw_thermal_sampled"] == pytest.approx(values["throttle_busy_seconds_hw_thermal"])
    assert values["throttle_busy_seconds_sw_power_cap"] == 0
    assert values["power_watts"] == pytest.approx(78.35), "the getter serves where the field does not"


def test_lost_card_and_its_xid(tmp_path: Path) -> None:
    """One card falls off the bus and comes back; the others are read in the same tick."""
    path = write_scenario(
        tmp_path / "lost.scenario", ["include eight", "card 2 * = GPU_IS_LOST during 2..4", "event 2 at 2 xid 79"]
    )
    with rig(path) as running:
        running.up()
        reading = running.until(lambda reading: reading.cards[2].lost == "GPU_IS_LOST")
        assert [bool(card.values) for card in reading.cards] == [index != 2 for index in range(8)]
        reading = running.until(lambda reading: bool(reading.cards[2].values))
    values = reading.cards[2].values
    assert (reading.cards[2].lost, values["xid_events_total"], values["xid_last_code"]) == ("", 1, 79)
    assert abs(values["xid_last_timestamp_seconds"] - time.time()) < 30
    assert reading.nvml.restarts == 0


def test_hanging_card_is_left_out_and_nothing_grows() -> None:
    """The others are back, no thread and no descriptor is added over 100 ticks, one reader runs."""
    with rig("hang", speed=2.0) as running:
        running.up()
        me = psutil.Process()
        before = (me.num_fds(), threading.active_count())
        reading = running.until(lambda reading: bool(reading.cards) and reading.cards[3].lost == "HUNG")
        for _ in range(100):
            reading = running.tick()
        assert (me.num_fds(), threading.active_count()) == before
        assert len(readers()) == 1
        assert readers()[0].num_threads() == 1
    assert [bool(card.values) for card in reading.cards] == [index != 3 for index in range(8)]
    assert (reading.nvml.restarts, reading.nvml.stuck_readers) == (1, 0)
    assert reading.cards[3].hung_s > 4


def test_hang_costs_the_others_at_most_three_ticks_of_a_second() -> None:
    """At the agent's own pace no value of the other cards is missing from more than three ticks."""
    with rig("hang", NvmlSettings()) as running:
        missing = 0
        for _ in range(9):
            start_s = time.monotonic()
            running.client.begin_tick()
            reading = running.client.end_tick(start_s + 0.5)
            cards = [card for card in reading.cards if card.identity.index != 3]
            missing += len(cards) < 7 or any("utilization_ratio" not in card.values for card in cards)
            time.sleep(start_s + 1.0 - time.monotonic())
    assert missing <= 3
    assert reading.cards[3].lost == "HUNG"


def test_slow_card_is_no_reason_to_wait(tmp_path: Path) -> None:
    """A card that takes seconds a call is left out like one that hangs."""
    path = write_scenario(tmp_path / "slow.scenario", ["include eight", "latency 1 * = 8s during 2.."])
    with rig(path) as running:
        running.up()
        reading = running.until(lambda reading: bool(reading.cards) and reading.cards[1].lost == "HUNG")
        reading = running.until(lambda reading: all(card.values for card in reading.cards if card.identity.index != 1))
    assert reading.nvml.up


def test_hang_in_an_event_wait_names_its_card(tmp_path: Path) -> None:
    """Waiting for XID events is part of a card's turn, so a hang there is found the same way."""
    path = write_scenario(
        tmp_path / "events.scenario", ["include h200x2", "system nvmlEventSetWait* = HANG during 1..3"]
    )
    with rig(path) as running:
        running.up()
        reading = running.until(lambda reading: reading.nvml.restarts >= 1)
    assert reading.nvml.restarts >= 1


def test_driver_appears_is_upgraded_and_comes_back() -> None:
    """No driver at first, then an upgrade under the running agent; the cards follow without a restart."""
    with rig("comes_and_goes", speed=2.0) as running:
        assert running.tick().nvml.error in ("STARTING", "DRIVER_NOT_LOADED")
        reading = running.up()
        assert reading.cards
        down = running.until(lambda reading: not reading.nvml.up, 20)
        assert down.cards == ()
        assert running.until(lambda reading: reading.nvml.up and bool(reading.cards), 60).cards


@pytest.mark.parametrize(
    ("scenario", "error"), [("mismatch", "LIB_RM_VERSION_MISMATCH"), ("nodriver", "DRIVER_NOT_LOADED")]
)
def test_init_failure_is_named(scenario: str, error: str) -> None:
    """The reader says why the driver cannot be initialised, and ends."""
    with rig(scenario) as running:
        reading = running.until(lambda reading: reading.nvml.error != "STARTING")
        assert (reading.nvml.up, reading.nvml.error) == (False, error)
        assert readers() == []


def test_missing_library_is_named(tmp_path: Path) -> None:
    """Without a driver there is no library, and that is what health says."""
    environ = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    environ.pop("FAKE_NVML_SCENARIO", None)
    settings = NvmlSettings(library=str(tmp_path / "libnvidia-ml.so.1"))
    client = ReaderClient(settings, SystemClock(), functools.partial(ReaderProcess, environ))
    client.begin_tick()
    reading = client.end_tick(time.monotonic() + 10)
    client.close(1.0)
    assert reading.nvml.error == "LIBRARY_NOT_FOUND"


def test_library_setting_names_another_place() -> None:
    """With nvml.library the loader's search path does not matter."""
    environ = fake_env("h200")
    library = Path(environ.pop("LD_LIBRARY_PATH").split(os.pathsep)[0]) / "libnvidia-ml.so.1"
    client = ReaderClient(NvmlSettings(library=str(library)), SystemClock(), functools.partial(ReaderProcess, environ))
    client.begin_tick()
    reading = client.end_tick(time.monotonic() + 10)
    client.close(1.0)
    assert reading.nvml.up


def test_crash_in_the_library_leaves_the_card_out(tmp_path: Path) -> None:
    """SIGSEGV inside a driver call costs that card, not the others."""
    path = write_scenario(
        tmp_path / "crash.scenario", ["include h200x2", "card 1 nvmlDeviceGetTemperature = CRASH during 1.."]
    )
    with rig(path) as running:
        running.up()
        reading = running.until(lambda reading: bool(reading.cards) and reading.cards[1].lost == "CRASHED")
        reading = running.until(lambda reading: bool(reading.cards[0].values))
    assert reading.health.errors["crashed"] == 1


def test_garbage_values_are_dropped(tmp_path: Path) -> None:
    """What nobody can believe is counted by its key and served by no name."""
    path = write_scenario(
        tmp_path / "garbage.scenario",
        [
            "include h200",
            "card 0 nvmlDeviceGetTemperature = 644245923",
            "card 0 nvmlDeviceGetUtilizationRates = gpu=4294967295 memory=3",
            "card 0 nvmlDeviceGetMemoryInfo_v2 = total=1000 reserved=0 free=0 used=2000",
        ],
    )
    with rig(path) as running:
        reading = running.up()
    values = reading.cards[0].values
    assert {"temperature_celsius", "utilization_ratio", "memory_used_bytes"} & set(values) == set()
    assert values["memory_utilization_ratio"] == 0.03
    assert set(reading.nvml.dropped) == {"temperature_celsius", "utilization_ratio", "memory_used_bytes"}


def test_access_lost_while_running(tmp_path: Path) -> None:
    """NVML good, then every call fails: down with its name, no card served, back when it answers."""
    path = write_scenario(tmp_path / "access.scenario", ["include h200x2", "card all * = UNKNOWN during 1..6"])
    with rig(path) as running:
        running.up()
        reading = running.until(lambda reading: not reading.nvml.up)
        assert (reading.nvml.error, reading.cards) == ("UNKNOWN", ())
        running.until(lambda reading: reading.nvml.up and all(card.values for card in reading.cards), 30)


def test_processes_are_listed_once(tmp_path: Path) -> None:
    """A process on the card is named with its kind and memory; hidden memory is unknown, not 0."""
    path = write_scenario(
        tmp_path / "processes.scenario",
        [
            "include h200",
            "process 0 compute pid 4711 memory 512MiB",
            "process 0 graphics pid 4711 memory 512MiB",
            "process 0 graphics pid 1432 memory unknown",
        ],
    )
    with rig(path) as running:
        card = running.up().cards[0]
    assert card.processes is not None
    assert {(process.pid, process.kind, process.memory_bytes) for process in card.processes} == {
        (4711, "compute", 512 << 20),
        (1432, "graphics", None),
    }
    assert card.values["processes"] == 2
    assert "process_memory_bytes" not in card.values


def test_reader_loads_little_and_runs_in_one_thread() -> None:
    """The child holds the driver and what it needs to speak; nothing of the agent's weight."""
    with rig("h200") as running:
        running.up()
        reader = readers()[0]
        assert reader.num_threads() == 1
        assert reader.memory_full_info().pss < 24 << 20


def test_output_of_a_library_does_not_reach_the_pipe() -> None:
    """What is printed on descriptor 1 inside the child goes to standard error."""
    code = (
        "import os, sys; from agent.nvml import reader; out = reader._own_output();"
        "os.write(1, b'noise\\n'); os.write(out, b'answer\\n')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=fake_env("h200"))
    assert (done.stdout, done.stderr) == (b"answer\n", b"noise\n")


@pytest.mark.parametrize("scenario", ["h200", "hanging"])
def test_reader_dies_with_its_parent(scenario: str, tmp_path: Path) -> None:
    """Also while a driver call hangs, a killed parent leaves no child."""
    hanging = write_scenario(tmp_path / "hanging.scenario", ["include h200", "card 0 * = HANG"])
    environ = fake_env("h200" if scenario == "h200" else hanging)
    code = (
        "import time; from agent.nvml.process import ReaderProcess; from agent.nvml.protocol import Start, encode\n"
        "child = ReaderProcess(); child.send(encode(Start())); print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environ) as parent:
        assert parent.stdout is not None
        reader = psutil.Process(int(parent.stdout.readline()))
        time.sleep(0.5)
        assert reader.is_running()
        parent.kill()
    gone, _ = psutil.wait_procs([reader], timeout=5)
    assert gone


def test_reader_ignores_signals_of_the_terminal_and_of_systemd() -> None:
    """It ends when the agent says so, not when a signal reaches the whole group."""
    with rig("h200") as running:
        running.up()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            readers()[0].send_signal(number)
        time.sleep(0.2)
        assert len(readers()) == 1
        assert running.tick().nvml.restarts == 0


def test_pause_lets_go_of_the_driver() -> None:
    """No process holds the library while every card is paused."""
    with rig("h200x2") as running:
        uuids = {card.identity.uuid for card in running.up().cards}
        running.client.pause(uuids)
        assert readers() == []
        assert running.tick().nvml.error == "PAUSED"
        running.client.resume(uuids)
        assert running.up().nvml.up


def test_burst_reaches_ten_a_second_beside_the_ticks() -> None:
    """A probe's attribution gets its samples while the loop goes on."""
    with rig("h200") as running:
        uuid = running.up().cards[0].identity.uuid
        answers: list[bool] = []

        def sample() -> None:
            for _ in range(20):
                answers.append(running.client.burst(uuid, 0.1) is not None)
                time.sleep(0.05)

        thread = threading.Thread(target=sample)
        start_s = time.monotonic()
        thread.start()
        readings = [running.tick() for _ in range(20)]
        thread.join()
        elapsed_s = time.monotonic() - start_s
    assert sum(answers) >= 19
    assert sum(answers) / elapsed_s >= 10
    assert all(reading.nvml.up for reading in readings)
