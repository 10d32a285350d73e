"""A card judged on the spot, from one run: for a prolog or epilog that cannot wait for a second one.

The agent itself condemns a card only on consecutive runs; here one judged run has to do, so the thresholds are
the agent's, but the word is a first one.
"""

import statistics
from collections.abc import Sequence
from typing import Final

import msgspec

from agent.config.settings import DegradedSettings
from agent.model.next_action import next_action, sentence
from agent.model.probe import ProbeRecord
from agent.model.reference import Reference, series_of
from agent.model.vocabulary import CardState
from agent.probes.attribution import MOST_SLOWED_SHARE, SLOWING_REASONS
from agent.verdicts.measurements import is_comparable, usable_reference
from agent.verdicts.models import model_of
from agent.verdicts.track import threshold

LEAST_PEERS: Final = 3
"""Fewer other cards of the model do not tell what is usual."""


class Spot(msgspec.Struct, frozen=True):
    """What one run says about a card."""

    state: CardState
    cause: str
    next_action: str = ""
    deviation: float | None = None
    """By which share the value differs from what it was compared with, below 0 where slower; None without."""


def judge_spot(
    record: ProbeRecord,
    model: str,
    references: Sequence[Reference],
    peers: Sequence[ProbeRecord],
    limits: DegradedSettings,
) -> Spot:
    """Judge a card by one record: its own reference decides, else its peers, else its model's floor.

    ``model`` is the card's name, ``peers`` are the records of the node's other cards of that model. A value that
    can be compared with nothing is ``unknown``, however high it is: nobody knows what is right.
    """
    result = record.result
    if result.reason == "gpu_lost":
        return Spot("lost", "gpu_lost", sentence(next_action(record)))
    if result.status != "ok":
        state: CardState = "faulty" if result.status == "wrong_answer" else "unknown"
        return Spot(state, result.reason, sentence(next_action(record)))
    if is_comparable(record):
        return _compare(record, model, references, peers, limits)
    shares = record.attribution.throttle_share if record.attribution else {}
    slowed = [reason for reason in SLOWING_REASONS if shares.get(reason, 0.0) > MOST_SLOWED_SHARE]
    if slowed:
        return Spot("throttled", slowed[0], "Check cooling and power supply; speed cannot be judged meanwhile.")
    contended = record.attribution is not None and record.attribution.contended
    return Spot("unknown", "contended" if contended else "not_judged", "Run it again while nobody uses the card.")


def _compare(
    record: ProbeRecord,
    model: str,
    references: Sequence[Reference],
    peers: Sequence[ProbeRecord],
    limits: DegradedSettings,
) -> Spot:
    value = record.result.value or 0.0
    reference = usable_reference(record, references)
    if reference is not None:
        return _against(value, reference.median, threshold(reference, limits), "own_reference")
    known = model_of(model)
    others = [
        peer.result.value
        for peer in peers
        if peer.result.value is not None and is_comparable(peer) and series_of(peer.result) == series_of(record.result)
    ]
    if len(others) >= LEAST_PEERS:
        spread = known.spread if known is not None and known.spread is not None else limits.unknown_spread
        most = max(limits.peers_drop, limits.peers_sigma * spread)
        return _against(value, statistics.median(others), most, "peers")
    floor = known.floor_for(record.result) if known else None
    if floor is not None and floor.basis == "own_runs":
        return _against(value, floor.value, 0.0, "model_floor")
    return Spot("unknown", "no_reference", "Let the agent run for a day, or pass --allow-unknown.")


def _against(value: float, usual: float, drop: float, what: str) -> Spot:
    deviation = value / usual - 1.0
    if deviation < -drop:
        return Spot(
            "degraded", what, "Run `heatsoak probe matmul` again, then compare with the card's neighbours.", deviation
        )
    return Spot("ok", what, "", deviation)
