"""The story's readings are believable, and its recordings say what the story says."""

from pathlib import Path

import pytest

from agent.model.quantities import BY_KEY
from agent.nvml.protocol import CardFound, Values
from agent.nvml.recording import read_recording
from agent.nvml.store import believable
from deploy.demo.history import write_history
from deploy.demo.recordings import write_recording
from deploy.demo.servers import DEMO_WAIT, shortened
from deploy.demo.story import BURN_IN_S, HOT_CELSIUS, NODES, SLOW_S, Seat, hot_for_s, probe_records, readings
from tests.support.names import RULES, rule_groups

NOW_S = 1_700_000_000.0
BURNING = NODES[0]


@pytest.mark.parametrize("ago_s", [0.0, BURN_IN_S / 2, BURN_IN_S + 60.0])
def test_every_reading_lies_in_its_rows_range(ago_s: float) -> None:
    """The reader would believe them all."""
    for node in NODES:
        for index, seat in enumerate(node.seats):
            for key, value in readings(seat, index, ago_s).items():
                assert BY_KEY[key].low <= value <= BY_KEY[key].high, key


def test_only_the_hot_card_throttles_and_only_once_it_is_hot() -> None:
    """Its clocks fall when its temperature reaches the limit, minutes after the burn-in began."""
    hot = Seat("hot", 3)
    assert hot_for_s(hot, BURN_IN_S - 60.0) == 0
    assert hot_for_s(hot, 0.0) > 3600
    assert readings(hot, 2, 0.0)["throttle_active_hw_thermal"] == 1
    assert readings(hot, 2, 0.0)["temperature_celsius"] == pytest.approx(HOT_CELSIUS, abs=1.0)
    assert readings(Seat("burning"), 0, 0.0)["throttle_active_hw_thermal"] == 0


def test_only_the_slow_card_is_slow_and_only_lately() -> None:
    """Eight per cent, in every run since its onset."""
    for record in probe_records(BURNING, NOW_S):
        if record.result.probe == "matmul":
            slow = BURNING.seats[record.gpu or 0].role == "slow" and record.wall_s >= NOW_S - SLOW_S + 300
            assert (record.result.value or 0.0) / 659.4e12 == pytest.approx(0.92 if slow else 1.0, abs=0.012)


def test_a_recording_holds_the_storys_readings(tmp_path: Path) -> None:
    """In the driver's own units: what is read back is what was told."""
    path = tmp_path / "recording.jsonl"
    write_recording(path, BURNING, 4711, NOW_S)
    entries = [entry.m for entry in read_recording(path)]
    assert [one.name for one in entries if isinstance(one, CardFound)] == ["NVIDIA H200"] * 8
    first = next(one for one in entries if isinstance(one, Values) and one.card == 2)
    values, dropped = believable(first.values)
    told = readings(BURNING.seats[2], 2, 0.0)
    assert not dropped
    assert {key: values[key] for key in told if key in values} == pytest.approx(
        {key: told[key] for key in told if key in values}, rel=1e-6
    )
    assert first.processes == [(4711, "compute", int(told["memory_used_bytes"]))]


def test_history_ends_before_the_start_and_names_its_target(tmp_path: Path) -> None:
    """Each line has the target's labels and a time; the last is the gap before the start."""
    path = tmp_path / "history.txt"
    write_history(path, [(NODES[2], "127.0.0.1:1")], NOW_S, length_s=120.0, gap_s=300.0)
    *lines, end = path.read_text().splitlines()
    assert end == "# EOF"
    assert all('job="heatsoak",instance="127.0.0.1:1"' in line for line in lines)
    times = [float(line.rpartition(" ")[2]) for line in lines]
    assert min(times) == NOW_S - 420
    assert max(times) == NOW_S - 330


def test_the_demos_alerts_are_the_shipped_ones_but_for_their_patience() -> None:
    """Only `for` differs."""
    shipped = {"groups": rule_groups("heatsoak-alerts.yaml")}
    for group, short in zip(shipped["groups"], shortened(shipped)["groups"], strict=True):
        for rule, shorter in zip(group["rules"], short["rules"], strict=True):
            assert {**rule, "for": ""} == {**shorter, "for": ""}
            assert shorter.get("for") == (DEMO_WAIT if "for" in rule else None)
    assert RULES.is_dir()
