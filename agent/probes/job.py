"""One order to a probe child."""

import msgspec

from agent.model.probe import ProbeRequest
from agent.model.snapshot import Card


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
