"""Drivers that refuse, hang and crash, and scenarios that are wrong."""

import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.support.fakenvml import write_scenario
from tests.unit.fakenvml.asking import CARD, DEADLINE_S, answers, blocked_signals, child, complaint, error

_T = "nvmlDeviceGetTemperature(card[0], 0)"


@pytest.mark.parametrize(
    "name", ["DRIVER_NOT_LOADED", "LIBRARY_NOT_FOUND", "LIB_RM_VERSION_MISMATCH", "NO_PERMISSION", "UNKNOWN"]
)
def test_init_fails_with_the_error_named(tmp_path: Path, name: str) -> None:
    """Initialisation answers what the line says."""
    with child(write_scenario(tmp_path / "x.scenario", f"system nvmlInit* = {name}")) as process:
        assert process.init == error(name)


def test_a_driver_comes_and_goes(tmp_path: Path) -> None:
    """Init fails while its window lasts and works after it, in the same process."""
    lines = CARD + "system nvmlInit* = DRIVER_NOT_LOADED"
    path = write_scenario(tmp_path / "x.scenario", lines)
    with child(path) as process:
        refused = process.init
        write_scenario(path, CARD)
        accepted, count = process.ask("nvmlInit()"), process.ask("nvmlDeviceGetCount()")

    assert (refused, accepted, count) == (error("DRIVER_NOT_LOADED"), None, 1)


def test_a_hung_call_outlives_every_signal_but_kill(tmp_path: Path) -> None:
    """Neither SIGALRM nor SIGUSR1, SIGINT or SIGTERM ends the process; SIGKILL does."""
    with child(write_scenario(tmp_path / "x.scenario", CARD + "card 0 nvmlDeviceGetTemperature = HANG")) as process:
        process.tell(_T)
        _wait_until_hung(process.process.pid)
        for sent in (signal.SIGALRM, signal.SIGUSR1, signal.SIGINT, signal.SIGTERM):
            process.process.send_signal(sent)
        with pytest.raises(subprocess.TimeoutExpired):
            process.process.wait(0.3)
        process.process.kill()

        assert process.process.wait(DEADLINE_S) == -signal.SIGKILL


def _wait_until_hung(pid: int) -> None:
    pause = threading.Event()
    for _ in range(int(DEADLINE_S / 0.01)):
        if blocked_signals(pid) >> (signal.SIGTERM - 1) & 1:
            return
        pause.wait(0.01)
    pytest.fail("the call never hung")


def test_another_thread_is_served_while_one_call_hangs(tmp_path: Path) -> None:
    """A hung card does not keep the others from answering."""
    lines = """
    cards 2
    card 0 nvmlDeviceGetTemperature = HANG
    card 1 nvmlDeviceGetTemperature = 34
    """
    hang = "__import__('threading').Thread(target=nvmlDeviceGetTemperature, args=(card[0], 0), daemon=True).start()"
    path = write_scenario(tmp_path / "x.scenario", lines)

    assert answers(path, hang, "nvmlDeviceGetTemperature(card[1], 0)") == [None, 34]


def test_a_crash_is_a_segmentation_fault(tmp_path: Path) -> None:
    """The process dies of SIGSEGV."""
    with child(write_scenario(tmp_path / "x.scenario", CARD + "card 0 nvmlDeviceGetTemperature = CRASH")) as process:
        process.tell(_T)

        assert process.process.wait(DEADLINE_S) == -signal.SIGSEGV


@pytest.mark.parametrize(("seconds", "expected"), [(4.0, "here"), (100.0, "gone"), (300.0, "here")])
def test_a_lost_card_is_lost_to_every_call(tmp_path: Path, seconds: float, expected: str) -> None:
    """Its handle, readings, field values and processes fail for as long as its window lasts."""
    lines = """
    cards 2
    card all nvmlDeviceGetTemperature = 34
    card all field 1 = 1
    card 1 * = GPU_IS_LOST during 50..200
    """
    path = write_scenario(tmp_path / "x.scenario", lines)
    found = answers(
        path,
        "nvmlDeviceGetIndex(nvmlDeviceGetHandleByIndex(1))",
        "nvmlDeviceGetTemperature(nvmlDeviceGetHandleByIndex(1), 0)",
        "nvmlDeviceGetTemperature(card[0], 0)",
        at_s=seconds,
    )

    gone = error("GPU_IS_LOST")
    assert found == ([gone, gone, 34] if expected == "gone" else [1, 34, 34])


def test_an_open_handle_of_a_lost_card_fails_too(tmp_path: Path) -> None:
    """Bulk reads through a handle from before are refused as well."""
    path = write_scenario(tmp_path / "x.scenario", CARD)
    with child(path) as process:
        write_scenario(path, CARD + "card 0 * = GPU_IS_LOST")
        found = [
            process.ask(ask)
            for ask in (
                "field(card[0], 1)",
                "nvmlDeviceGetComputeRunningProcesses_v3(card[0])",
                "samples(card[0], NVML_TOTAL_POWER_SAMPLES)",
                "nvmlDeviceGetPciInfo(card[0])",
            )
        ]

    assert found == [error("GPU_IS_LOST")] * 4


@pytest.mark.parametrize(
    ("lines", "line", "words"),
    [
        ("cards 1\nboard 0", 2, ["'board' is no statement", "card"]),
        ("cards 1\n\n# note\ncard 0 nvmlDeviceGetTemprature = 3", 4, ["nvmlDeviceGetTemprature"]),
        ("cards 1\ncard 0 nvmlDeviceGetTemperature = warm", 2, ["'warm'", "constant"]),
        ("cards 1\ncard 0 nvmlDeviceGetTemperature = 1 2", 2, ["1 values, not 2"]),
        ("cards 1\ncard 0 nvmlDeviceGetTemperature 1 2 = 1", 2, ["1 arguments", "'2'"]),
        ("cards 1\ncard 3 nvmlDeviceGetTemperature = 1", 2, ["there are 1 cards"]),
        ("cards 1\ncard 0 nvmlDeviceGetUtilizationRates = gpu=1 mem=2", 2, ["'mem'", "nvmlUtilization_t"]),
        ("cards 1\ncard 0 nvmlDeviceGetUtilizationRates = 1", 2, ["a bare value"]),
        ("cards 1\ncard 0 nvmlDevice* = 1", 2, ["is a pattern"]),
        ("cards 1\ncard 0 nvmlDeviceGetTemperature = steps 5: 1 | 2: 3", 2, ["second 2 comes after second 5"]),
        ("cards 1\ncard 0 nvmlDeviceGetTemperature = 1 | 2", 2, ["without 'calls'"]),
        ("cards 1\ncard 0 nvmlDeviceGetTemperature = 1 during 5", 2, ["'5' is no window", "5..15"]),
        ("cards 1\ncard 0 nvmlDeviceGetTemperature = 5+3/h", 2, ["'/h' is not understood"]),
        ("cards 1\nlatency 0 nvmlDeviceGetTemperature = 5min", 2, ["'5min' is no time"]),
        ("cards 1\nprocess 0 compute pid me", 2, ["'me' is no process id"]),
        ("cards 1\nevent 0 at 5", 2, ["xid NUMBER"]),
        ("cards 99", 1, ["'99'", "0 to 64"]),
        ("cards 1 2", 1, ["'2' is more than 'cards' takes"]),
        ("cards", 1, ["the line ends"]),
        ("include nowhere", 1, ["nowhere.scenario"]),
    ],
)
def test_a_wrong_scenario_is_told_with_its_line(tmp_path: Path, lines: str, line: int, words: list[str]) -> None:
    """Standard error names file, line and fault; every call answers UNKNOWN."""
    path = write_scenario(tmp_path / "bad.scenario", lines)

    init, told = complaint(path)

    assert init == error("UNKNOWN")
    assert f"{path}:{line}: " in told
    assert all(word in told for word in words)


def test_a_fault_in_an_included_file_names_that_file(tmp_path: Path) -> None:
    """The line counted is the included file's."""
    inner = write_scenario(tmp_path / "inner.scenario", "\nnonsense")
    outer = write_scenario(tmp_path / "outer.scenario", "cards 1\ninclude inner")

    _, told = complaint(outer)

    assert f"{inner}:2: 'nonsense'" in told


def test_a_file_that_includes_itself_is_refused(tmp_path: Path) -> None:
    """The nesting has an end."""
    path = write_scenario(tmp_path / "loop.scenario", "include loop")

    init, told = complaint(path)

    assert init == error("UNKNOWN")
    assert "include itself" in told


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    """The variable and its value are named."""
    init, told = complaint(tmp_path / "none.scenario")

    assert init == error("UNKNOWN")
    assert f"FAKE_NVML_SCENARIO={tmp_path / 'none.scenario'}" in told


def test_a_file_gone_bad_and_mended_is_read_again(tmp_path: Path) -> None:
    """A running process fails while the file is wrong, and works once it is right."""
    good = CARD + "card 0 nvmlDeviceGetTemperature = 34"
    path = write_scenario(tmp_path / "x.scenario", good)
    with child(path) as process:
        before = process.ask(_T)
        write_scenario(path, "nonsense")
        broken = process.ask(_T)
        write_scenario(path, good)
        after = process.ask(_T)

    assert (before, broken, after) == (34, error("UNKNOWN"), 34)
