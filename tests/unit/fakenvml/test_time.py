"""Answers that change: over calls, over seconds, and when the file is replaced."""

from pathlib import Path

import pytest

from tests.support.fakenvml import write_scenario
from tests.unit.fakenvml.asking import CARD, answers, child, error

_T = "nvmlDeviceGetTemperature(card[0], 0)"
_E = "nvmlDeviceGetTotalEnergyConsumption(card[0])"


def _at(tmp_path: Path, line: str, seconds: float, expression: str = _T) -> object:
    path = write_scenario(tmp_path / "x.scenario", CARD + line)
    return answers(path, expression, at_s=seconds)[0]


def test_calls_answer_in_their_order_and_stay_with_the_last(tmp_path: Path) -> None:
    """Each call takes the next part; errors are parts too."""
    path = write_scenario(tmp_path / "x.scenario", CARD + "card 0 nvmlDeviceGetTemperature = calls 34|NOT_SUPPORTED|36")

    assert answers(path, *[_T] * 4) == [34, error("NOT_SUPPORTED"), 36, 36]


def test_calls_begin_anew_where_they_repeat(tmp_path: Path) -> None:
    """After the last part comes the first."""
    path = write_scenario(tmp_path / "x.scenario", CARD + "card 0 nvmlDeviceGetTemperature = calls 1 | 2 repeat")

    assert answers(path, *[_T] * 5) == [1, 2, 1, 2, 1]


@pytest.mark.parametrize(
    ("line", "seconds", "expected"),
    [
        ("steps 100: 34 | 200: 80", 50, error("NOT_SUPPORTED")),
        ("steps 100: 34 | 200: 80", 150, 34),
        ("steps 100: 34 | 200: 80", 250, 80),
        ("steps 0: 34 | 200: GPU_IS_LOST", 250, error("GPU_IS_LOST")),
        ("steps 0: 1 | 100: 2 repeat 200", 1050, 1),
        ("steps 0: 1 | 100: 2 repeat 200", 1150, 2),
        ("ramp 0: 0 | 1000000: 100", 500000, 50),
        ("ramp 0: 0 | 100: 100", 1000, 100),
        ("34 during 100..200", 150, 34),
        ("34 during 100..200", 250, error("NOT_SUPPORTED")),
        ("34 during ..200", 150, 34),
        ("34 during 100..", 50, error("NOT_SUPPORTED")),
    ],
)
def test_the_second_decides(tmp_path: Path, line: str, seconds: float, expected: object) -> None:
    """Steps hold, ramps are straight, windows open and close."""
    assert _at(tmp_path, f"card 0 nvmlDeviceGetTemperature = {line}", seconds) == expected


@pytest.mark.parametrize(
    ("value", "seconds", "expected"),
    [
        ("5000+50/s[10..20]", 5, 5000),
        ("5000+50/s[10..20]", 100, 5500),
        ("5000+50/s[10..20]+1/s[30..40]", 100, 5510),
        ("7-1/s[0..5]", 100, 2),
    ],
)
def test_a_counter_rises_only_in_its_window(tmp_path: Path, value: str, seconds: float, expected: int) -> None:
    """What it gained is kept afterwards."""
    assert _at(tmp_path, f"card 0 nvmlDeviceGetTotalEnergyConsumption = {value}", seconds, _E) == expected


def test_a_counter_without_window_rises_from_second_0(tmp_path: Path) -> None:
    """At 1000 a second it stands, a moment after second 100, a little above 100 000."""
    gained = _at(tmp_path, "card 0 nvmlDeviceGetTotalEnergyConsumption = 1000/s", 100, _E)

    assert isinstance(gained, int)
    assert 100_000 <= gained < 130_000


def test_speed_makes_scenario_time_run_faster(tmp_path: Path) -> None:
    """A thousand million times as fast, a process is past second 1000 at once."""
    path = write_scenario(tmp_path / "x.scenario", CARD + "card 0 nvmlDeviceGetTemperature = steps 0: 1 | 1000: 2")

    with child(path, speed=1e9) as process:
        assert process.ask(_T) == 2


def test_a_replaced_file_is_seen_by_a_running_process(tmp_path: Path) -> None:
    """The next call answers from the new file; cards may come and go with it."""
    path = write_scenario(tmp_path / "x.scenario", CARD + "card 0 nvmlDeviceGetTemperature = 34")
    with child(path) as process:
        before = process.ask(_T)
        write_scenario(path, "cards 2\ncard 0 nvmlDeviceGetTemperature = 80")
        after = process.ask(_T)
        write_scenario(path, "cards 0")
        gone = process.ask(_T)

    assert (before, after, gone) == (34, 80, error("INVALID_ARGUMENT"))


def test_latency_is_passed_first_and_later(tmp_path: Path) -> None:
    """The first call of a line takes its own time; a later line about the call overrides."""
    lines = """
    card 0 nvmlDeviceGetTemperature = 34
    card 0 nvmlDeviceGetPowerUsage = 1
    latency all * = 60s
    latency all nvmlDeviceGetHandle* = 0
    latency 0 nvmlDeviceGetTemperature = 2ms first 60ms
    latency 0 nvmlDeviceGetPowerUsage = 0
    """
    path = write_scenario(tmp_path / "x.scenario", CARD + lines)
    power = "nvmlDeviceGetPowerUsage(card[0])"

    first, later, none = answers(path, *(f"took(lambda: {ask})" for ask in (_T, _T, power)))

    assert first >= 0.06
    assert later >= 0.002
    assert none < 60


def test_field_values_take_their_time_each(tmp_path: Path) -> None:
    """A call for several of them takes the sum."""
    lines = """
    card 0 field 1 = 1
    card 0 field 2 = 1
    latency 0 field = 20ms
    """
    path = write_scenario(tmp_path / "x.scenario", CARD + lines)

    (seconds,) = answers(path, "took(lambda: field(card[0], 1, 2))")

    assert seconds >= 0.04
