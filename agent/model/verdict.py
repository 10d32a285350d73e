"""What the rules conclude about a card, its workload and the node."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

from agent.model.vocabulary import CardState, NodeState, WorkloadState

RuleMode = Literal["off", "shadow", "on"]


class Finding(msgspec.Struct, frozen=True):
    """One rule that holds: state, cause, the numbers and thresholds behind it, and what to do next."""

    rule: str
    state: str
    cause: str
    summary: str
    next_action: str
    since_wall_s: float
    evidence: Mapping[str, float] = MappingProxyType({})
    shadow: bool = False
    """Exported but left out of the card's state."""


class CardVerdict(msgspec.Struct, frozen=True):
    """A card's state and its workload's, with every finding that holds."""

    gpu: int | None
    uuid: str
    state: CardState
    workload: WorkloadState
    since_wall_s: float
    findings: tuple[Finding, ...] = ()


class NodeVerdict(msgspec.Struct, frozen=True):
    """The node's state, with every node-wide finding that holds."""

    state: NodeState
    since_wall_s: float
    findings: tuple[Finding, ...] = ()
