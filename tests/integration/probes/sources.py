"""A card source for tests: what it shows is changed while a probe runs."""

import threading
from collections.abc import Collection

import msgspec

from agent.model.snapshot import Card, CardIdentity, GpuProcess, NvmlHealth
from agent.nvml.source import GpuReading
from tests.integration.probes.conftest import CARD_UUID

RESTING = Card(
    CardIdentity(0, CARD_UUID, pci_bus_id="0000:1b:00.0", driver="580.159.04"),
    {
        "utilization_ratio": 0.0,
        "memory_used_bytes": 4e6,
        "clock_sm_hertz": 1.5e9,
        "power_instant_watts": 650.0,
        "temperature_celsius": 60.0,
    },
    (),
)


SECOND_UUID = "GPU-00000000-0000-0000-0000-00000000000b"


class LiveSource:
    """Shows one card, and a second one where asked to; thread-safe."""

    def __init__(self, *further: Card) -> None:
        """Start with the card at rest, beside ``further`` ones that stay as they are."""
        self._lock = threading.Lock()
        self._card: Card | None = RESTING
        self._further = {card.identity.uuid: card for card in further}
        self.bursts = 0

    def show(self, card: Card | None) -> None:
        """Show another state from now on; None answers nothing."""
        with self._lock:
            self._card = card

    def add_process(self, pid: int) -> None:
        """Put a process on the card."""
        self.show(msgspec.structs.replace(RESTING, processes=(GpuProcess(pid, "compute", 1),)))

    def begin_tick(self) -> None:
        """Do nothing: every answer is at hand."""

    def end_tick(self, until_monotonic_s: float) -> GpuReading:
        """Return the card as it is."""
        assert until_monotonic_s
        with self._lock:
            cards = (self._card,) if self._card else ()
            return GpuReading((*cards, *self._further.values()), NvmlHealth(up=True))

    def burst(self, uuid: str, timeout_s: float) -> Card | None:
        """Return the card as it is."""
        assert timeout_s > 0
        if uuid in self._further:
            return self._further[uuid]
        assert uuid == CARD_UUID
        with self._lock:
            self.bursts += 1
            return self._card

    def pause(self, uuids: Collection[str]) -> None:
        """Do nothing."""

    def resume(self, uuids: Collection[str]) -> None:
        """Do nothing."""

    def close(self, timeout_s: float) -> None:
        """Do nothing."""
