"""Cards as tests of probing need them."""

from agent.model.snapshot import Card, CardIdentity, GpuProcess, Snapshot

UUID = "GPU-00000000-0000-0000-0000-00000000000a"
MIB = 1024.0 * 1024


def card(
    *,
    index: int = 0,
    uuid: str = UUID,
    utilization: float | None = 0.0,
    used_mib: float | None = 4.0,
    processes: tuple[GpuProcess, ...] | None = (),
    lost: str = "",
    driver: str = "580.159.04",
    **values: float,
) -> Card:
    """Return a card at rest, unless told otherwise."""
    known = {"utilization_ratio": utilization, "memory_used_bytes": None if used_mib is None else used_mib * MIB}
    return Card(
        CardIdentity(index, uuid, pci_bus_id="0000:1b:00.0", driver=driver),
        {**{key: value for key, value in known.items() if value is not None}, **values},
        processes,
        lost,
    )


def snapshot(monotonic_s: float, *cards: Card) -> Snapshot:
    """Return what a tick saw."""
    return Snapshot(taken_monotonic_s=monotonic_s, taken_wall_s=1.7e9 + monotonic_s, cards=cards)


def compute(pid: int) -> GpuProcess:
    """Return a process that computes."""
    return GpuProcess(pid, "compute", 1)
