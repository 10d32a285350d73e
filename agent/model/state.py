"""What the agent keeps over restarts, as others see it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec

from agent.model.snapshot import CardIdentity

StateTrouble = Literal[
    "permission_denied", "read_only", "disk_full", "io_error", "damaged", "newer_version", "locked", "unusable"
]
STATE_TROUBLES: Final[tuple[StateTrouble, ...]] = (
    "permission_denied",
    "read_only",
    "disk_full",
    "io_error",
    "damaged",
    "newer_version",
    "locked",
    "unusable",
)


class ExpectedCard(msgspec.Struct, frozen=True):
    """A card that belongs to this node, and when it was seen, in seconds since the Unix epoch."""

    identity: CardIdentity
    first_seen_wall_s: float
    last_seen_wall_s: float


class StateHealth(msgspec.Struct, frozen=True):
    """How the state file fares; while it is not ``durable``, all is kept in memory and lost with the agent."""

    durable: bool
    trouble: StateTrouble | None = None
    """Why it is not durable; None while it is."""
    detail: str = ""
    """The same in words, with the path."""
    set_aside: str = ""
    """Where the last file that could not be used was moved since the start; empty where none was."""
    errors: Mapping[StateTrouble, int] = MappingProxyType(dict.fromkeys(STATE_TROUBLES, 0))
    """How often writing or opening failed since the start; every reason exists at 0."""
