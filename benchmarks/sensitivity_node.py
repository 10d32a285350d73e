"""A node of several cards played through the rules themselves: who is blamed when the host slows all of them."""

import heapq
import random
from collections.abc import Iterator

import msgspec

from agent.config.settings import VerdictSettings
from agent.model.probe import PROBE_KINDS, Attribution, Environment, ProbeName, ProbeRecord, ProbeResult
from agent.model.reference import Reference
from agent.model.snapshot import Card, CardIdentity
from agent.verdicts.measurements import JUDGED_PAIR, ROBUST_SIGMA
from agent.verdicts.rules import degraded, fell_together, slow_drift
from agent.verdicts.view import CardView

HOUR_S = 3600.0
BEFORE_H = 12
AFTER_H = 6
FIGURES_APART_S = 7.0
_PAIR_S = (0.0, 30.0)
_SUSPICION_S = (300.0, 900.0)


class Outcome(msgspec.Struct, frozen=True):
    """What one episode led to."""

    blamed: frozenset[int]
    """Cards that were called degraded at any time."""
    host_blamed: bool
    runs_to_blame: int
    """Judged runs of card 0 from the episode's begin to its verdict; 0 where there was none."""


class Node:
    """Cards with an hourly run each, spread over the hour; runs on suspicion as the rules ask for them."""

    def __init__(self, cards: int, cv: tuple[float, float], seed: int) -> None:
        self._rng = random.Random(seed)
        self._cv = cv
        self._settings = VerdictSettings()
        self._records: list[list[ProbeRecord]] = [[] for _ in range(cards)]
        self._due: list[tuple[float, int, str]] = []
        self._asked: dict[int, float] = {}

    def play(self, depth: float, hours: int, slow_cards: frozenset[int]) -> Outcome:
        """Slow ``slow_cards`` by ``depth`` for so many hours, and see whom the rules blame."""
        begin_s = BEFORE_H * HOUR_S + self._rng.uniform(0, HOUR_S)
        end_s = begin_s + hours * HOUR_S
        for index in range(len(self._records)):
            for hour in range(BEFORE_H + hours + AFTER_H):
                heapq.heappush(self._due, (hour * HOUR_S + index * HOUR_S / len(self._records), index, "schedule"))
        blamed: set[int] = set()
        host, runs, found_after = False, 0, 0
        while self._due:
            at_s, index, trigger = heapq.heappop(self._due)
            slow = depth if begin_s <= at_s < end_s and index in slow_cards else 0.0
            for delay_s in _PAIR_S if trigger == "suspicion" else (0.0,):
                self._records[index] += self._run(index, at_s + delay_s, slow, trigger)
            runs += index == 0 and begin_s <= at_s < end_s
            if begin_s <= at_s:
                now, together = self._judge(at_s + 60.0)
                found_after = found_after or (runs if 0 in now else 0)
                blamed |= now
                host = host or together
        return Outcome(frozenset(blamed), host, found_after)

    def _judge(self, now_s: float) -> tuple[set[int], bool]:
        """Ask the rules about every card, plan what they want measured; return who is blamed, and if the host is."""
        blamed, together = set(), False
        for index, view in enumerate(self._views(now_s)):
            answers = [rule.judge(view, self._settings) for rule in (degraded, slow_drift, fell_together)]
            found = [answer for answer in answers if answer is not None]
            blamed |= {index for answer in found if answer.state == "degraded"}
            together |= any(answer.state == "unknown" for answer in found)
            if any(answer.suspect for answer in found) and self._asked.get(index, 0.0) <= now_s:
                self._asked[index] = now_s + _SUSPICION_S[-1]
                for delay_s in _SUSPICION_S:
                    heapq.heappush(self._due, (now_s + delay_s, index, "suspicion"))
        return blamed, together

    def _views(self, now_s: float) -> Iterator[CardView]:
        alone = [
            CardView(
                now_monotonic_s=now_s,
                now_wall_s=now_s,
                card=Card(CardIdentity(index, f"GPU-{index}")),
                probes=tuple(records),
                references=tuple(
                    self._reference(index, probe, cv) for probe, cv in zip(JUDGED_PAIR, self._cv, strict=True)
                ),
            )
            for index, records in enumerate(self._records)
        ]
        for view in alone:
            yield msgspec.structs.replace(view, peers=tuple(other for other in alone if other is not view))

    def _run(self, index: int, at_s: float, slow: float, trigger: str) -> Iterator[ProbeRecord]:
        for number, probe in enumerate(JUDGED_PAIR):
            value = (1.0 - slow) * (1.0 + self._rng.gauss(0.0, self._cv[number]))
            yield self._record(index, probe, at_s + number * FIGURES_APART_S, value, trigger)

    def _record(self, index: int, probe: ProbeName, at_s: float, value: float, trigger: str) -> ProbeRecord:
        result = ProbeResult(probe, "ok", dtype="bf16", shape="a shape", value=value, unit=PROBE_KINDS[probe].unit)
        return ProbeRecord(
            wall_s=at_s,
            gpu=index,
            uuid=f"GPU-{index}",
            result=result,
            environment=Environment(tensorflow="2.21.0", driver="580"),
            attribution=Attribution(samples=30, temperature_max_celsius=45.0),
            judged=True,
            trigger=trigger,
        )

    def _reference(self, index: int, probe: ProbeName, cv: float) -> Reference:
        return Reference(
            uuid=f"GPU-{index}",
            probe=probe,
            dtype="bf16",
            shape="a shape",
            tensorflow="2.21.0",
            driver="580",
            median=1.0,
            mad=cv / ROBUST_SIGMA,
            runs=25,
            first_wall_s=-2.0,
            last_wall_s=-1.0,
        )


def episodes(
    cards: int, cv: tuple[float, float], depth: float, slow_cards: int, trials: int, seed: int
) -> list[Outcome]:
    """Play so many episodes of 1 to 6 hours."""
    return [
        Node(cards, cv, seed + trial).play(depth, 1 + trial % 6, frozenset(range(slow_cards)))
        for trial in range(trials)
    ]
