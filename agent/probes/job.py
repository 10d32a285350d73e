"""One order to a probe child."""

import msgspec

from agent.model.probe import ProbeRequest
from agent.model.snapshot import Card


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """What a child is given besides its first device, and how it takes memory."""

    companions: tuple[Card, ...] = ()
    """Further cards that a training step is spread over, one replica on each."""
    replicas: int = 1
    """Logical devices that a training step is spread over on the CPU; cards count themselves."""
    memory_limit_bytes: int = 0
    """Hard limit of TensorFlow's allocator on each device, as of a smaller card; 0 for none."""
    reserve_all: bool = False
    """Whether TensorFlow takes the whole of each card at once, as it does by default; else it grows as needed."""

    @property
    def devices(self) -> int:
        """How many devices a step is spread over."""
        return 1 + len(self.companions) if self.companions else self.replicas


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure, on what, and how to behave meanwhile."""

    requests: tuple[ProbeRequest, ...]
    card: Card | None
    """None for the CPU."""
    trigger: str
    threads: int = 0
    """Most threads for one operation; 0 leaves it to the probe."""
    yield_to_tenants: bool = True
    """Whether the run ends when another process comes to the card; else the result is marked contended."""
    setup: Setup = Setup()

    @property
    def cards(self) -> tuple[Card, ...]:
        """All cards of the job, the first one first; none on the CPU."""
        return (self.card, *self.setup.companions) if self.card else ()
