"""The JSON of ``/api/v1/status``: its documented form, made from a snapshot.

Version 1 only grows: fields are added, none changes its meaning. A value that is unknown is null or absent.
Times are seconds since the Unix epoch.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from agent.model.plain import plain
from agent.model.probe import ProbeRecord
from agent.model.snapshot import Card, CardIdentity, CollectorHealth, LoopHealth, NvmlHealth, Snapshot
from agent.model.verdict import CardVerdict, Finding
from agent.model.vocabulary import CardState, NodeState, WorkloadState

STATUS_VERSION: Final = 1


class CardStatus(msgspec.Struct, frozen=True):
    """One card: who it is, what is concluded, what it reads now."""

    identity: CardIdentity
    state: CardState | None
    """None until the card was judged, and where the document is not fresh."""
    workload: WorkloadState | None
    since_wall_s: float | None
    findings: tuple[Finding, ...]
    lost: str
    values: Mapping[str, float]
    """Readings by the key of their quantity, in the unit that the key or its metric ends in."""


class NodeStatus(msgspec.Struct, frozen=True):
    """The node: where it stands and what is concluded about it."""

    name: str
    rack: str
    position: str
    state: NodeState | None
    since_wall_s: float | None
    findings: tuple[Finding, ...]


class Status(msgspec.Struct, frozen=True):
    """The whole document."""

    version: int
    agent_version: str
    taken_wall_s: float
    fresh: bool
    """False where the agent's loop stands still: then all of this is as old as ``taken_wall_s`` says."""
    node: NodeStatus
    cards: tuple[CardStatus, ...]
    probes: tuple[ProbeRecord, ...]
    nvml: NvmlHealth
    collectors: tuple[CollectorHealth, ...]
    loop: LoopHealth


def status_of(snapshot: Snapshot, *, version: str, fresh: bool = True) -> Status:
    """Return the document for ``snapshot``; of one that is not ``fresh``, without readings and verdicts."""
    verdicts = {verdict.uuid: verdict for verdict in snapshot.verdicts} if fresh else {}
    node = snapshot.node_verdict if fresh else None
    return Status(
        version=STATUS_VERSION,
        agent_version=version,
        taken_wall_s=snapshot.taken_wall_s,
        fresh=fresh,
        node=NodeStatus(
            name=snapshot.hostname,
            rack=snapshot.rack,
            position=snapshot.position,
            state=node.state if node else None,
            since_wall_s=node.since_wall_s if node else None,
            findings=node.findings if node else (),
        ),
        cards=tuple(_card(card, verdicts.get(card.identity.uuid), fresh=fresh) for card in snapshot.cards),
        probes=snapshot.probes,
        nvml=snapshot.nvml,
        collectors=snapshot.health,
        loop=snapshot.loop,
    )


def _card(card: Card, verdict: CardVerdict | None, *, fresh: bool) -> CardStatus:
    return CardStatus(
        identity=card.identity,
        state=verdict.state if verdict else None,
        workload=verdict.workload if verdict else None,
        since_wall_s=verdict.since_wall_s if verdict else None,
        findings=verdict.findings if verdict else (),
        lost=card.lost,
        values=card.values if fresh else {},
    )


def encode_status(status: Status) -> bytes:
    """Return the document as JSON; text that UTF-8 cannot hold becomes question marks."""
    try:
        return msgspec.json.encode(status, enc_hook=plain, order="deterministic")
    except UnicodeEncodeError:
        return msgspec.json.encode(_encodable(msgspec.to_builtins(status, enc_hook=plain)))


def _encodable(tree: object) -> object:
    if isinstance(tree, str):
        return tree.encode("utf-8", "replace").decode()
    if isinstance(tree, dict):
        return {_encodable(key): _encodable(value) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [_encodable(value) for value in tree]
    return tree
