"""The hours before the demo began, as a file that `promtool tsdb create-blocks-from openmetrics` takes."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from agent.host.collect import HOST_METRICS
from agent.model.metrics import Sample
from agent.model.probe import ProbeRecord
from agent.model.snapshot import Card, CollectorHealth, GpuProcess, LoopHealth, NvmlHealth, Snapshot
from agent.model.verdict import CardVerdict, Finding, NodeVerdict
from agent.model.vocabulary import CardState, WorkloadState
from agent.probes.counts import METRICS
from deploy.demo.story import (
    BURN_IN_S,
    DRIVER,
    GIB,
    SLOW_S,
    STARVED_S,
    Node,
    Seat,
    hot_for_s,
    identity,
    probe_records,
    readings,
)
from exporters.prometheus import MetricsPage

STEP_S: Final = 30.0
_CONFIRMED_S: Final = SLOW_S - 3 * 3600.0
"""How long ago the slow card had been slow in enough runs."""
_JUDGED_S: Final = 30.0


def write_history(
    path: Path, nodes: Iterable[tuple[Node, str]], start_wall_s: float, length_s: float, gap_s: float = 0.0
) -> None:
    """Write what each node, scraped as ``instance``, would have served each ``STEP_S`` for ``length_s`` seconds.

    It ends ``gap_s`` before ``start_wall_s``, the moment to which the story counts.
    """
    with path.open("w", encoding="utf-8") as stream:
        for node, instance in nodes:
            for line in _lines(node, instance, start_wall_s, length_s, gap_s):
                stream.write(line)
        stream.write("# EOF\n")


def _lines(node: Node, instance: str, start_wall_s: float, length_s: float, gap_s: float) -> Iterator[str]:
    page = MetricsPage(version="demo", definitions=(*HOST_METRICS, *METRICS))
    records = list(probe_records(node, start_wall_s))
    target = f'job="heatsoak",instance="{instance}"'
    for step in range(int(length_s / STEP_S)):
        ago_s = gap_s + length_s - step * STEP_S
        wall_s = start_wall_s - ago_s
        text = page.render(snapshot(node, records, wall_s, ago_s)).decode()
        yield f"up{{{target}}} 1 {wall_s:.3f}\n"
        for line in text.splitlines():
            if not line.startswith("#"):
                yield _with_target(line, target, wall_s)


def _with_target(line: str, target: str, wall_s: float) -> str:
    series, _, value = line.rpartition(" ")
    name, brace, labels = series.partition("{")
    return f"{name}{{{target}{',' + labels if brace else '}'} {value} {wall_s:.3f}\n"


def snapshot(node: Node, records: Iterable[ProbeRecord], wall_s: float, ago_s: float) -> Snapshot:
    """Return what the agent of ``node`` would have seen ``ago_s`` seconds before the demo's start."""
    last = {(one.uuid, one.result.probe): one for one in records if one.wall_s <= wall_s}
    cards = tuple(_card(node, index, seat, ago_s) for index, seat in enumerate(node.seats))
    return Snapshot(
        taken_monotonic_s=1e6 - ago_s,
        taken_wall_s=wall_s,
        hostname=node.name,
        rack=node.rack,
        position=node.position,
        cards=cards,
        nvml=_driver(node),
        host=tuple(_host(node, ago_s)),
        health=tuple(
            CollectorHealth(name, 1, ok=True, last_success_wall_s=wall_s)
            for name in ("cpu", "memory", "disk", "network")
        ),
        loop=LoopHealth(int(1e6 - ago_s)),
        probes=tuple(last.values()),
        verdicts=tuple(_verdict(node, index, seat, wall_s, ago_s) for index, seat in enumerate(node.seats)),
        node_verdict=NodeVerdict("ok", wall_s - 864_000.0),
    )


def _driver(node: Node) -> NvmlHealth:
    if not node.seats:
        return NvmlHealth(error="NVML_ERROR_LIBRARY_NOT_FOUND", advice="No NVIDIA driver is installed on this machine.")
    return NvmlHealth(up=True, driver=DRIVER, nvml="13.580.159")


def _card(node: Node, index: int, seat: Seat, ago_s: float) -> Card:
    values = readings(seat, index, ago_s)
    for reason in ("sw_power_cap", "hw_thermal"):
        values[f"throttle_busy_seconds_{reason}"] = values[f"throttle_seconds_{reason}"]
    busy = values["utilization_ratio"] > 0
    processes = (GpuProcess(4711, "compute", int(values["memory_used_bytes"])),) if busy else ()
    return Card(identity(node, index), values, processes)


def _verdict(node: Node, index: int, seat: Seat, wall_s: float, ago_s: float) -> CardVerdict:
    findings = tuple(_findings(seat, wall_s, ago_s))
    bad = next((one for one in findings if one.state in ("throttled", "degraded")), None)
    state: CardState = "ok" if bad is None else ("throttled" if bad.state == "throttled" else "degraded")
    busy = readings(seat, index, ago_s)["utilization_ratio"] > 0
    starved = any(one.state == "input_bound" for one in findings)
    workload: WorkloadState = "input_bound" if starved else "ok" if busy else "none"
    since_wall_s = bad.since_wall_s if bad else wall_s + ago_s - 864_000.0
    return CardVerdict(index, identity(node, index).uuid, state, workload, since_wall_s, findings)


def _findings(seat: Seat, wall_s: float, ago_s: float) -> Iterator[Finding]:
    start_wall_s = wall_s + ago_s
    hot_s = hot_for_s(seat, ago_s) - _JUDGED_S
    if hot_s > 0:
        evidence = {"throttled_ratio": 0.93, "threshold_ratio": 0.1, "temperature_celsius": 87.0}
        yield Finding("thermal_throttling", "throttled", "hw_thermal", "", "", wall_s - hot_s, evidence)
    if seat.role == "slow" and ago_s <= _CONFIRMED_S:
        evidence = {"deviation_ratio": -0.08, "value": 606.6e12, "reference": 659.4e12}
        yield Finding("degraded", "degraded", "unexplained", "", "", start_wall_s - _CONFIRMED_S, evidence)
    if seat.role == "starved" and ago_s < STARVED_S - _JUDGED_S:
        evidence = {"utilization_ratio": 0.31, "threshold_ratio": 0.75, "process_cores": 1.0, "allowed_cores": 16.0,
                    "host_used_ratio": 0.12, "disk_pressure_ratio": 0.01}  # fmt: skip
        began_s = start_wall_s - STARVED_S + _JUDGED_S
        yield Finding("input_bound", "input_bound", "parallelism", "", "", began_s, evidence)


def _host(node: Node, ago_s: float) -> Iterator[Sample]:
    passed_s = 1e6 - ago_s
    worked_s = max(0.0, BURN_IN_S - ago_s) * (3.0 if len(node.seats) > 2 else 1.1)
    yield Sample("heatsoak_host_cpu_seconds_total", 0.9 * passed_s + worked_s, ("user",))
    yield Sample("heatsoak_host_cpu_seconds_total", 0.3 * passed_s + 0.2 * worked_s, ("system",))
    yield Sample("heatsoak_host_cpu_seconds_total", 14.8 * passed_s - 1.2 * worked_s, ("idle",))
    yield Sample("heatsoak_host_cpus", 16.0)
    yield Sample("heatsoak_host_load1", 4.3 if worked_s else 1.2)
    yield Sample("heatsoak_host_memory_total_bytes", 251.6 * GIB)
    yield Sample("heatsoak_host_memory_available_bytes", 203.9 * GIB)
    for resource, share in (("cpu", 0.004), ("io", 0.021), ("memory", 0.0)):
        yield Sample("heatsoak_host_pressure_seconds_total", share * passed_s, (resource, "some"))
    yield Sample("heatsoak_host_disk_read_bytes_total", 4e6 * passed_s + 4e7 * worked_s, ("nvme0n1",))
    yield Sample("heatsoak_host_disk_written_bytes_total", 1.2e6 * passed_s, ("nvme0n1",))
    yield Sample("heatsoak_host_network_receive_bytes_total", 2e6 * passed_s + 9e7 * worked_s, ("ens1f0",))
    yield Sample("heatsoak_host_network_transmit_bytes_total", 1e6 * passed_s, ("ens1f0",))
