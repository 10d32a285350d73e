"""Probe histories as the schedule makes them, and the views that rules get of them."""

import random
from collections.abc import Iterable, Sequence

import msgspec

from agent.model.probe import ProbeRecord
from agent.model.reference import Reference
from agent.model.snapshot import Card, CardIdentity
from agent.verdicts.view import CardView
from tests.support.records import HOUR_S, START_S, record, reference

GOOD = 660e12
CV = 0.0047
"""Between fresh processes, as measured."""


def hourly(
    deviations: Iterable[float],
    *,
    uuid: str = "GPU-a",
    start_s: float = START_S,
    seed: int | None = None,
    **changes: object,
) -> list[ProbeRecord]:
    """Return one scheduled run an hour at each deviation from ``GOOD``, with noise where a seed is given."""
    noise = random.Random(seed)
    return [
        record(
            start_s + hour * HOUR_S,
            GOOD * (1.0 + deviation + (noise.gauss(0.0, CV) if seed is not None else 0.0)),
            uuid=uuid,
            **changes,  # type: ignore[arg-type]
        )
        for hour, deviation in enumerate(deviations)
    ]


def on_suspicion(after: ProbeRecord, deviation: float, rounds: int = 2) -> list[ProbeRecord]:
    """Return the runs that follow a suspicious one: a pair after 5 minutes, a pair after 15."""
    return [
        record(after.wall_s + delay_s, GOOD * (1.0 + deviation), uuid=after.uuid, trigger="suspicion")
        for delay_s in (300.0, 330.0, 900.0, 930.0)[: 2 * rounds]
    ]


def confirmed(before: Sequence[ProbeRecord], deviation: float) -> list[ProbeRecord]:
    """Return ``before`` and, an hour later, a slow run with those on suspicion that confirm it."""
    last = before[-1]
    (slow,) = hourly([deviation], uuid=last.uuid, start_s=last.wall_s + HOUR_S)
    return [*before, slow, *on_suspicion(slow, deviation)]


def card_view(
    probes: Sequence[ProbeRecord],
    references: Sequence[Reference] = (reference(),),
    *,
    peers: tuple[CardView, ...] = (),
    now_wall_s: float | None = None,
    name: str = "NVIDIA Test",
    held: frozenset[str] = frozenset(),
) -> CardView:
    """Return the view of the card whose probes these are, a moment after the last."""
    uuid = probes[0].uuid if probes else "GPU-a"
    last_s = max((one.wall_s for one in probes), default=START_S)
    return CardView(
        now_monotonic_s=1000.0,
        now_wall_s=last_s + 1.0 if now_wall_s is None else now_wall_s,
        card=Card(CardIdentity(0, uuid, name=name)),
        probes=tuple(probes),
        references=tuple(msgspec.structs.replace(one, uuid=uuid) for one in references),
        peers=peers,
        held=held,
    )


def node(*histories: Sequence[ProbeRecord]) -> list[CardView]:
    """Return the views of a node's cards, each the others' peer, all with the plain reference."""
    now_s = max(one.wall_s for history in histories for one in history) + 1.0
    alone = [card_view(history, now_wall_s=now_s) for history in histories]
    return [msgspec.structs.replace(view, peers=tuple(other for other in alone if other is not view)) for view in alone]
