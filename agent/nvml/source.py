"""What the agent asks of whatever reads the cards: the reader child, or a recording played back."""

from collections.abc import Collection
from typing import Protocol

import msgspec

from agent.model.snapshot import Card, CollectorHealth, NvmlHealth


class GpuReading(msgspec.Struct, frozen=True):
    """All cards as one tick knows them, and how the driver fares.

    Cards hold only values younger than three periods of their tier.
    """

    cards: tuple[Card, ...]
    nvml: NvmlHealth
    health: CollectorHealth = CollectorHealth("nvml")


class CardSource(Protocol):
    """A source of card readings; ``burst`` may be called from another thread, the rest from the loop."""

    def begin_tick(self) -> None:
        """Ask for what is due; return at once, also while an earlier ask is unanswered."""

    def end_tick(self, until_monotonic_s: float) -> GpuReading:
        """Wait for the answer, at most until then; return the freshest reading in either case."""

    def burst(self, uuid: str, timeout_s: float) -> Card | None:
        """Read the fast values of one card now; None where no answer came in time."""

    def pause(self, uuids: Collection[str]) -> None:
        """Let go of these cards; of the driver itself where all cards are named."""

    def resume(self, uuids: Collection[str]) -> None:
        """Take these cards up again."""

    def close(self, timeout_s: float) -> None:
        """End the child; return within ``timeout_s`` even where it cannot be killed."""
