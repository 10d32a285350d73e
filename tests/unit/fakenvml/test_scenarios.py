"""The scenarios of the repository: all can be read, and the H200's are the recorded cards."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakenvml.convert import convert_calls, convert_trace
from tests.support.fakenvml import SCENARIOS, scenario_path, write_scenario
from tests.unit.fakenvml.asking import Json, answers, child, error

RECORDINGS = Path(SCENARIOS).parent / "recordings"
_NO_CARD = {
    "nodriver": "DRIVER_NOT_LOADED",
    "mismatch": "LIB_RM_VERSION_MISMATCH",
    "comes_and_goes": "DRIVER_NOT_LOADED",
}
_RISES_BY_NS_PER_S = 1e9
_ENERGY = ("TotalEnergyConsumption", "NVML_FI_DEV_ENERGY", "NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION")


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.scenario")), ids=lambda path: path.stem)
def test_every_scenario_is_sound(path: Path) -> None:
    """Each is understood; its cards have a name, a UUID and a bus id of their own, or init fails as it should."""
    with child(path) as process:
        if path.stem in _NO_CARD:
            assert process.init == error(_NO_CARD[path.stem])
            return
        count = process.ask("nvmlDeviceGetCount()")
        uuids = {process.ask(f"nvmlDeviceGetUUID(card[{index}])") for index in range(count)}
        buses = {process.ask(f"nvmlDeviceGetPciInfo(card[{index}]).busId") for index in range(count)}

        assert len(uuids) == len(buses) == count
        assert count == {"h200x2": 2, "sixteen": 16, "eight": 8, "lost": 8, "hang": 8, "slow": 8}.get(path.stem, 1)


@pytest.mark.parametrize("name", ["h200", "h200x2"])
def test_recorded_calls_are_converted_to_the_lines_in_the_repository(name: str) -> None:
    """The scenario is what the converter makes of the recording."""
    recording = json.loads((RECORDINGS / f"{name}_calls.json").read_text(encoding="utf-8"))
    lines = (SCENARIOS / "parts" / f"{name}_calls.scenario").read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if not line.startswith("#")] == list(convert_calls(recording))


@pytest.mark.parametrize("name", ["h200", "h200x2"])
def test_every_recorded_call_is_answered_as_the_card_did(name: str) -> None:
    """Call by call and field by field; counters that rose then may be ahead by what passes here."""
    recording = json.loads((RECORDINGS / f"{name}_calls.json").read_text(encoding="utf-8"))
    with child(scenario_path(name)) as process:
        assert process.ask("nvmlSystemGetDriverVersion()") == recording["driver"]
        for index, device in enumerate(recording["devices"]):
            for call, expression, expected in _recorded(index, device):
                assert _agree(call, process.ask(expression), expected), f"card {index}: {call}"


def _recorded(index: int, device: dict[str, Json]) -> Iterator[tuple[str, str, Json]]:
    """Yield each recorded call, the expression that makes it again, and its answer."""
    for call, entry in device.items():
        if isinstance(entry, dict) and "us" in entry:
            function, _, arguments = call.rstrip(")").partition("(")
            parameters = ", ".join([f"card[{index}]", *filter(None, arguments.split(","))])
            yield call, f"nvmlDeviceGet{function}({parameters})", _expected(entry["v"])
    for field, entry in device["fields"].items():
        codes = {0: entry["v"], 2: error("INVALID_ARGUMENT"), 3: error("NOT_SUPPORTED")}
        if entry["ret"] or entry["v"] is not None:
            yield field, f"field(card[{index}], {entry['id']})[0]", codes[entry["ret"]]


def _expected(value: Json) -> Json:
    if not isinstance(value, dict) or "error" not in value:
        return value
    words = re.findall(r"[A-Z][a-z]+", value["error"].removeprefix("NVMLError_"))
    return error("_".join(words).upper())


def _agree(call: str, found: Json, expected: Json) -> bool:
    if isinstance(expected, dict) and "violationTime" in expected:
        found, expected = found["violationTime"], expected["violationTime"]
    if isinstance(expected, dict) and call.startswith("MarginTemperature"):
        expected = expected["marginTemperature"]
    if isinstance(expected, int) and isinstance(found, int):
        slack = _RISES_BY_NS_PER_S * 60 if expected > _RISES_BY_NS_PER_S else 80_000 * 60 if call in _ENERGY else 0
        return expected <= found <= expected + slack
    return bool(found == expected)


def test_the_recorded_latencies_are_passed(tmp_path: Path) -> None:
    """An energy read takes the card's 4 ms, a temperature next to nothing."""
    path = write_scenario(tmp_path / "x.scenario", "include h200")
    energy = "took(lambda: nvmlDeviceGetTotalEnergyConsumption(card[0]))"

    first, later = answers(path, energy, energy)

    assert first >= 0.0073
    assert later >= 0.0042


def test_a_trace_becomes_steps_and_ramps(tmp_path: Path) -> None:
    """Each reading holds until it changes, counters rise in between, memory says when the process was there."""
    row = {"util": 0, "mutil": 0, "mem": 100, "P": 70, "Pi": 71, "T": 30, "MT": 31, "sm": 345, "mc": 3201, "ps": 0}
    row |= {"thr": 1, "E": 1000} | {f"v{index}": 0 for index in (0, 1, 2, 3, 4, 5, 10, 11)}
    busy = row | {"util": 99, "mem": 300, "P": 700, "T": 60, "thr": 4, "E": 31000, "v0": 30_000_000_000}
    points = [{"t": 5000.0, "0": row}, {"t": 5030.0, "0": busy}, {"t": 5060.0, "0": busy | {"E": 61000}}]
    path = write_scenario(tmp_path / "x.scenario", ["cards 1", *convert_trace(points, memory_bytes=1000)])
    asks = (
        "nvmlDeviceGetPowerUsage(card[0])",
        "nvmlDeviceGetMemoryInfo(card[0]).free",
        "nvmlDeviceGetTotalEnergyConsumption(card[0]) // 1000",
        "nvmlDeviceGetCurrentClocksEventReasons(card[0])",
        "len(nvmlDeviceGetComputeRunningProcesses(card[0]))",
        "field(card[0], NVML_FI_DEV_PERF_POLICY_POWER)[0] // 1_000_000_000",
    )

    before, under_load = answers(path, *asks, at_s=14.1), answers(path, *asks, at_s=44.1)

    assert before == [70, 900, 15, 1, 0, 14]
    assert under_load == [700, 700, 45, 4, 1, 30]


def test_the_busy_card_reaches_its_power_cap_in_the_recorded_minute() -> None:
    """At second 20 it runs at full duty on the cap, at second 2 it is idle."""
    asks = (
        "nvmlDeviceGetUtilizationRates(card[0]).gpu",
        "nvmlDeviceGetCurrentClocksEventReasons(card[0])",
        "max(value for _, value in samples(card[0], NVML_TOTAL_POWER_SAMPLES))",
    )

    idle, busy = answers("h200_busy", *asks, at_s=2.0), answers("h200_busy", *asks, at_s=20.0)

    assert idle[:2] == [0, 1]
    assert idle[2] < 100_000
    assert busy[0] > 90
    assert busy[1] == 4
    assert busy[2] > 600_000


def test_an_unknown_scenario_is_refused_with_the_known_ones() -> None:
    """The error lists what there is."""
    with pytest.raises(FileNotFoundError, match=r"'h300': not found; there are .*h200"):
        scenario_path("h300")
