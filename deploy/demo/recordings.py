"""The story as recordings, as `heatsoak record` would have written them, and as a state directory with past probes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from agent.clock import Clock
from agent.model.quantities import BY_KEY
from agent.model.quantity import Quantity
from agent.model.vocabulary import TIER_PERIOD_S, Tier
from agent.nvml.protocol import CardFound, Done, Event, Hello, Ready, Values, encode
from agent.nvml.recording import FORMAT_VERSION, Header
from agent.state.store import Store
from deploy.demo.story import DRIVER, Node, identity, probe_records, readings

LENGTH_S: Final = 600
"""A recording's length in seconds; the agent plays it again and again."""


def write_recording(path: Path, node: Node, job_pid: int, wall_s: float) -> None:
    """Write what the reader of ``node`` would say from ``wall_s`` on; starved cards are held by ``job_pid``."""
    with path.open("wb") as stream:
        stream.write(msgspec.json.encode(Header(FORMAT_VERSION, wall_s, masked=True)) + b"\n")
        for offset_s, event in _events(node, job_pid):
            stream.write(b'{"t":%.3f,"m":%s}\n' % (offset_s, encode(event).rstrip()))


def seed_state(directory: Path, node: Node, clock: Clock) -> None:
    """Write the probes of the last days into a state directory that no agent uses yet."""
    store = Store.open(directory, clock)
    for record in probe_records(node, clock.wall_s()):
        store.add_probe(record)
    store.close()


def _events(node: Node, job_pid: int) -> Iterator[tuple[float, Event]]:
    yield 0.0, Hello(len(node.seats), DRIVER, "13.580.159")
    for index in range(len(node.seats)):
        who = identity(node, index)
        yield (
            0.0,
            CardFound(index, who.uuid, who.name, who.serial, who.pci_bus_id, who.vbios, who.compute_capability),
        )
    yield 0.0, Ready()
    for second in range(LENGTH_S):
        tiers = tuple(tier for tier, period_s in TIER_PERIOD_S.items() if second % period_s == 0)
        for index, seat in enumerate(node.seats):
            values = readings(seat, index, -second)
            raw, held = _raw(values, tiers), _held(values, job_pid)
            yield second + 0.1, Values(second, index, tiers, raw, held, succeeded=len(values))
        yield second + 0.1, Done(second)


def _held(values: dict[str, float], job_pid: int) -> list[tuple[int, str, int | None]]:
    """Return the process on a card that works."""
    return [(job_pid, "compute", int(values["memory_used_bytes"]))] if values["utilization_ratio"] else []


def _raw(values: dict[str, float], tiers: tuple[Tier, ...]) -> dict[str, float | None]:
    """Return the numbers that the driver would give."""
    return {key: _driver_number(BY_KEY[key], value) for key, value in values.items() if BY_KEY[key].tier in tiers}


def _driver_number(row: Quantity, value: float) -> float:
    return round(value * row.divisor / row.scale, 6)
