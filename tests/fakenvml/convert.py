"""Turns recordings of real cards into scenarios.

``python -m tests.fakenvml.convert calls FILE`` takes every NVML answer with its latency (JSON),
``… trace FILE`` readings over time under load (a JSON object a line), and prints a scenario.
"""

import argparse
import json
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Recording = Mapping[str, Any]

_CALL = re.compile(r"(\w+?)(?:\(([\d,]*)\))?$")
_ERRORS = {2: "INVALID_ARGUMENT", 3: "NOT_SUPPORTED", 4: "NO_PERMISSION", 6: "NOT_FOUND", 15: "GPU_IS_LOST"}
_PROCESS_LISTS = ("ComputeRunningProcesses", "GraphicsRunningProcesses", "MPSComputeRunningProcesses")
_STRUCTS = {"MarginTemperature": "marginTemperature"}
"""Calls whose struct the recorder reduced to its only number."""
_SIZED = ("MemoryAffinity",)
"""Calls whose first recorded argument is the length of a buffer."""
_NS_PER_S = "1e9"
_RISING = {"ViolationStatus(4)", "ViolationStatus(10)", "ViolationStatus(11)"}
"""Counters that rise by a second each second while a card idles; the others stand still."""
_RISING_FIELDS = {78, 80, 81}
_ENERGY_FIELDS = {83, 191}
_SAME_COST = 1.5
"""A latency within this factor of the usual one needs no line of its own."""
_POLICY_OF_VIOLATION = {"v0": 74, "v1": 75, "v2": 76, "v3": 77, "v4": 78, "v5": 79, "v10": 80, "v11": 81}
_RAMP_PERIOD_S = 1.0


def convert_calls(recording: Recording) -> Iterator[str]:
    """Yield the lines of a scenario that answers as the recorded cards did, and as slowly."""
    devices = recording["devices"]
    yield f"cards {len(devices)}"
    yield f'system nvmlSystemGetDriverVersion = "{recording["driver"]}"'
    yield f'system nvmlSystemGetNVMLVersion = "{recording["nvml"]}"'
    yield f"system nvmlSystemGetCudaDriverVersion = {recording['cuda']}"
    yield f"system nvmlSystemGetCudaDriverVersion_v2 = {recording['cuda']}"
    yield f"latency system nvmlInit* = {recording['init_ms']:.1f}ms"
    yield f"card all nvmlDeviceGetSupportedEventTypes = {recording['supported_events']}"
    names = [name for name in devices[0] if _is_call(devices[0][name])]
    for name in names:
        yield from _merged(devices, lambda device, name=name: _answer(name, device))  # type: ignore[misc]
        yield from _call_latency(name, [device[name] for device in devices])
    yield from _fields(devices)
    yield from _gpm(devices)


def _is_call(entry: object) -> bool:
    return isinstance(entry, Mapping) and "us" in entry


def _merged(devices: Sequence[Recording], line: Callable[[Recording], str]) -> Iterator[str]:
    """Yield one line for all cards where they agree, else one for each."""
    lines = [line(device) for device in devices]
    if not lines[0]:
        return
    if len(set(lines)) == 1:
        yield f"card all {lines[0]}"
    else:
        yield from (f"card {index} {text}" for index, text in enumerate(lines))


def _function(name: str) -> str:
    """Return function and arguments as a line names them: ``nvmlDeviceGetClockInfo 1``."""
    match = _CALL.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r}: expected NAME or NAME(ARGUMENT,…)")
    args = (match[2] or "").split(",") if match[2] else []
    if match[1] in _SIZED:
        args = args[1:]
    version = "_v3" if match[1] in _PROCESS_LISTS else ""
    return " ".join([f"nvmlDeviceGet{match[1]}{version}", *args])


def _answer(name: str, device: Recording) -> str:
    value = device[name]["v"]
    if name == "PciInfo_v3":
        bus_id = value["busId"].lower()[4:]
        return f'pci = "{bus_id}" {value["pciDeviceId"]} {value["pciSubSystemId"]}'
    if name in _PROCESS_LISTS or name == "Index":
        return ""  # `process` lines say who is there, and a card knows its index
    if name == "TotalEnergyConsumption":
        value = f"{value}+{device['PowerUsage']['v']}/s"
    text = _outcome(value, rising=name in _RISING)
    if name in _STRUCTS:
        text = f"{_STRUCTS[name]}={text}"
    return f"{_function(name)} = {text}"


def _outcome(value: Any, *, rising: bool = False) -> str:
    """Return a recorded value as a line writes it."""
    if isinstance(value, Mapping):
        if "error" in value:
            return _ERRORS[value["code"]]
        parts = {key: str(number) for key, number in value.items()}
        if "referenceTime" in parts:
            parts["referenceTime"] = "now_us"
            parts["violationTime"] += f"+{_NS_PER_S}/s" if rising else ""
        return " ".join(f"{key}={text}" for key, text in parts.items())
    if isinstance(value, list):
        return " ".join(str(number) for number in value)
    if isinstance(value, str) and "/s" not in value:
        return f'"{value}"'
    return str(value)


def _call_latency(name: str, entries: Sequence[Recording]) -> Iterator[str]:
    function = "nvmlDeviceGetPciInfo_v3" if name == "PciInfo_v3" else _function(name)
    usual, first = _mean(entries, "us"), _mean(entries, "max_us")
    yield f"latency all {function} = {usual:.1f}us first {first:.1f}us"


def _mean(entries: Iterable[Recording], key: str) -> float:
    return statistics.fmean(entry[key] for entry in entries)


def _fields(devices: Sequence[Recording]) -> Iterator[str]:
    """Yield field values; what is not supported needs no line."""
    fields = devices[0]["fields"]
    usual = statistics.median(field["us"] for field in fields.values())
    yield f"latency all field = {usual:.1f}us"
    for name in fields:
        yield from _merged(devices, lambda device, name=name: _field(name, device))  # type: ignore[misc]
        cost = _mean([device["fields"][name] for device in devices], "us")
        if not usual / _SAME_COST < cost < usual * _SAME_COST:
            yield f"latency all field {name} = {cost:.1f}us"


def _field(name: str, device: Recording) -> str:
    field = device["fields"][name]
    value = field["v"]
    if field["ret"] or value is None:
        return "" if field["ret"] in (0, 3) else f"field {name} = {_ERRORS[field['ret']]}"
    text = str(value)
    if field["id"] in _ENERGY_FIELDS:
        text += f"+{device['PowerUsage']['v']}/s"
    if field["id"] in _RISING_FIELDS:
        text += f"+{_NS_PER_S}/s"
    return f"field {name} = {text}" + (" as double" if isinstance(value, float) else "")


def _gpm(devices: Sequence[Recording]) -> Iterator[str]:
    if not devices[0].get("gpm_supported"):
        return
    yield "card all nvmlGpmQueryDeviceSupport = isSupportedDevice=1"
    yield f"latency all nvmlGpmSampleGet = {_mean(devices, 'gpm_sample_us'):.1f}us"
    yield f"latency all nvmlGpmMetricsGet = {_mean(devices, 'gpm_get_us'):.1f}us"
    for metric, (code, value) in devices[0]["gpm"].items():
        yield f"card all gpm {metric} = {_ERRORS[code] if code else value}"


# ---- readings over time ----------------------------------------------------------------------------


def convert_trace(points: Sequence[Recording], memory_bytes: int, card: str = "0") -> Iterator[str]:
    """Yield the lines that let a card of ``memory_bytes`` live through a trace, its first point at second 0."""
    times = [point["t"] - points[0]["t"] for point in points]
    rows = [point[card] for point in points]
    column = _Columns(card, times, rows)
    idle = rows[0]["mem"]
    yield from column.steps("nvmlDeviceGetUtilizationRates", lambda row: f"gpu={row['util']} memory={row['mutil']}")
    yield from column.steps("nvmlDeviceGetMemoryInfo", lambda row: _memory(memory_bytes, row["mem"]))
    yield from column.steps(
        "nvmlDeviceGetMemoryInfo_v2",
        lambda row: f"{_memory(memory_bytes, row['mem'], reserved=idle)} reserved={idle}",
    )
    for function, key in _STEPPED:
        yield from column.steps(function, lambda row, key=key: str(row[key]))  # type: ignore[misc]
    for function in ("nvmlDeviceGetTotalEnergyConsumption", "field 83", "field 191"):
        yield from column.ramp(function, lambda row: str(row["E"]))
    for key, policy in _POLICY_OF_VIOLATION.items():
        if any(row[key] != rows[0][key] for row in rows):
            violation = f"nvmlDeviceGetViolationStatus {key[1:]}"
            yield from column.ramp(violation, lambda row, key=key: f"referenceTime=now_us violationTime={row[key]}")  # type: ignore[misc]
            yield from column.ramp(f"field {policy}", lambda row, key=key: str(row[key]))  # type: ignore[misc]
    used = [time for time, row in zip(times, rows, strict=True) if row["mem"] > idle]
    if used:
        peak = max(row["mem"] for row in rows) - idle
        yield f"process {card} compute pid 4242 memory {peak} during {used[0]:.1f}..{used[-1]:.1f}"


def _memory(total: int, taken: int, reserved: int = 0) -> str:
    """Return the members of a memory answer; the older call counts what the driver reserves as used."""
    return f"total={total} free={total - taken} used={taken - reserved}"


_STEPPED = (
    ("nvmlDeviceGetPowerUsage", "P"),
    ("field NVML_FI_DEV_POWER_AVERAGE", "P"),
    ("field NVML_FI_DEV_POWER_INSTANT", "Pi"),
    ("samples NVML_TOTAL_POWER_SAMPLES", "Pi"),
    ("samples NVML_GPU_UTILIZATION_SAMPLES", "util"),
    ("samples NVML_MEMORY_UTILIZATION_SAMPLES", "mutil"),
    ("nvmlDeviceGetTemperature NVML_TEMPERATURE_GPU", "T"),
    ("field NVML_FI_DEV_MEMORY_TEMP", "MT"),
    ("nvmlDeviceGetClockInfo NVML_CLOCK_GRAPHICS", "sm"),
    ("nvmlDeviceGetClockInfo NVML_CLOCK_SM", "sm"),
    ("nvmlDeviceGetClockInfo NVML_CLOCK_MEM", "mc"),
    ("nvmlDeviceGetPerformanceState", "ps"),
    ("nvmlDeviceGetCurrentClocksEventReasons", "thr"),
    ("nvmlDeviceGetCurrentClocksThrottleReasons", "thr"),
)


class _Columns:
    """Writes a trace's columns as lines, a value only where it changes."""

    def __init__(self, card: str, times: Sequence[float], rows: Sequence[Recording]) -> None:
        self._card = card
        self._times = times
        self._rows = rows

    def steps(self, function: str, text: Callable[[Recording], str]) -> Iterator[str]:
        parts: list[str] = []
        previous = ""
        for time, row in zip(self._times, self._rows, strict=True):
            now = text(row)
            if now != previous:
                parts.append(f"{time:.1f}: {now}")
            previous = now
        yield self._line(function, "steps", parts)

    def ramp(self, function: str, text: Callable[[Recording], str]) -> Iterator[str]:
        parts: list[str] = []
        due = 0.0
        for time, row in zip(self._times, self._rows, strict=True):
            if time >= due:
                parts.append(f"{time:.1f}: {text(row)}")
                due += _RAMP_PERIOD_S
        yield self._line(function, "ramp", parts)

    def _line(self, function: str, course: str, parts: list[str]) -> str:
        return f"card {self._card} {function} = {course} {' | '.join(parts)}"


def main() -> None:
    """Print the scenario made from a recording."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=("calls", "trace"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--card", default="0", help="which card of a trace")
    parser.add_argument("--memory-bytes", type=int, default=150754820096, help="memory of a trace's card")
    arguments = parser.parse_args()
    text = arguments.file.read_text(encoding="utf-8")
    if arguments.kind == "calls":
        lines = convert_calls(json.loads(text))
    else:
        lines = convert_trace([json.loads(line) for line in text.splitlines()], arguments.memory_bytes, arguments.card)
    print("\n".join(lines))


if __name__ == "__main__":
    main()
