"""``heatsoak probe --quick``: the idle cards judged within seconds, for a Slurm epilog or a Kubernetes job."""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from agent.clock import Clock
from agent.config.settings import DegradedSettings, ProbeSettings
from agent.errors import EXIT_BAD_CARD, EXIT_OK, EXIT_UNKNOWN_CARD
from agent.model.probe import ProbeRecord, ProbeRequest
from agent.model.reference import Reference
from agent.model.snapshot import Card
from agent.probes.memory import available_bytes, needed_mib
from agent.probes.outcome import Failure, failed_result
from agent.probes.session import ProbeSession
from agent.probes.show import Progress, table, value_text
from agent.probes.spot import Spot, judge_spot
from agent.state import references as stored
from agent.state.database import copy_of
from agent.state.paths import DATABASE_NAME

WITHIN_S: Final = 20.0
END_S: Final = 2.5
"""What ending a child that outran its deadline may take."""
LEAST_S: Final = 3.0
"""In less than this no child is worth its start."""
REQUESTS: Final = (ProbeRequest("matmul", "bf16", seconds=3.0),)
_CPUS_PER_CHILD: Final = 2
_MEBIBYTE: Final = 1024 * 1024
_BAD: Final = frozenset({"lost", "faulty", "degraded"})


class CardJudgement(msgspec.Struct, frozen=True):
    """One card, what one run says about it, and the run."""

    gpu: int
    uuid: str
    name: str
    spot: Spot
    record: ProbeRecord


class NodeJudgement(msgspec.Struct, frozen=True):
    """All cards, and the exit code that follows."""

    cards: tuple[CardJudgement, ...]
    exit_code: int
    note: str = ""
    """What is to be said beside the cards, empty for nothing."""


def measure_cards(
    session: ProbeSession, cards: Sequence[Card], clock: Clock, until_s: float, at_once: int
) -> dict[str, ProbeRecord]:
    """Measure idle cards side by side, ``at_once`` at a time, and return a record of each by UUID.

    What would not be done by ``until_s`` on the monotonic clock is a timeout.
    """
    progress = Progress()

    def measure(card: Card) -> ProbeRecord:
        uuid = card.identity.uuid
        left_s = until_s - END_S - clock.monotonic_s()
        if left_s < LEAST_S:
            late = failed_result(REQUESTS[0], Failure("timeout", "deadline", "no time left to start"))
            return ProbeRecord(clock.wall_s(), card.identity.index, uuid, late, trigger="command")
        title = f"gpu {card.identity.index}"
        return session.run(REQUESTS, uuid, on_event=progress.of(title, REQUESTS), deadline_s=left_s)[0]

    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        records = list(pool.map(measure, cards))
    progress.clear()
    return {record.uuid: record for record in records}


def side_by_side(settings: ProbeSettings, cards: int) -> int:
    """Return how many children the host holds at once: CPUs and memory allow it, and no more than ``cards``."""
    left_bytes = available_bytes()
    per_child_bytes = max(1.0, needed_mib(REQUESTS, "gpu", settings.host_memory_mib) * _MEBIBYTE)
    by_memory = cards if left_bytes is None else int(left_bytes / per_child_bytes)
    return max(1, min(cards, by_memory, len(os.sched_getaffinity(0)) // _CPUS_PER_CHILD))


def judge_records(
    cards: Sequence[Card],
    records: Mapping[str, ProbeRecord],
    references: Sequence[Reference],
    limits: DegradedSettings,
    expected_gpus: int = -1,
) -> NodeJudgement:
    """Judge each measured card; ``expected_gpus`` of -1 says that nobody knows how many there should be.

    A missing card is as bad as a lost one.
    """
    judged = []
    for card in cards:
        identity = card.identity
        peers = [
            records[other.identity.uuid]
            for other in cards
            if other.identity.name == identity.name and other.identity.uuid != identity.uuid
        ]
        record = records[identity.uuid]
        spot = judge_spot(record, identity.name, references, peers, limits)
        if card.lost:
            spot = Spot("lost", card.lost, "Take the node out of service; reset the card or reboot.")
        judged.append(CardJudgement(identity.index, identity.uuid, identity.name, spot, record))
    missing = expected_gpus - len(cards)
    note = f"{missing} of {expected_gpus} cards are missing" if missing > 0 else ""
    return NodeJudgement(tuple(judged), _exit_code(judged, missing=missing > 0), note)


def judge_nothing(bus_ids: Sequence[str], trouble: str) -> NodeJudgement:
    """Judge a node on which the driver shows no card: fine where the PCI bus has none either."""
    if not bus_ids:
        return NodeJudgement((), EXIT_OK, "no NVIDIA card on the PCI bus: nothing to judge")
    where = ", ".join(bus_ids)
    return NodeJudgement((), EXIT_UNKNOWN_CARD, f"the driver shows no card ({trouble or 'no reason given'}): {where}")


def _exit_code(judged: Sequence[CardJudgement], *, missing: bool) -> int:
    states = {one.spot.state for one in judged}
    if missing or states & _BAD:
        return EXIT_BAD_CARD
    return EXIT_UNKNOWN_CARD if "unknown" in states else EXIT_OK


def known_references(state_directory: Path) -> tuple[Reference, ...]:
    """Return the references that the agent keeps there, also while it runs; empty where none can be read."""
    connection = copy_of(state_directory / DATABASE_NAME)
    try:
        return stored.every(connection)
    finally:
        connection.close()


def judgement_text(node: NodeJudgement) -> str:
    """Return a judgement for people."""
    rows = [
        (
            f"gpu {one.gpu}",
            one.spot.state,
            one.spot.cause,
            value_text(one.record.result),
            "" if one.spot.deviation is None else f"{one.spot.deviation:+.1%}",
            one.spot.next_action,
        )
        for one in node.cards
    ]
    lines = [table(("card", "state", "cause", "matmul bf16", "against", "next action"), rows)] if rows else []
    return "\n".join([*lines, *([node.note] if node.note else [])])
