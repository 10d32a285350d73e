"""Thresholds chosen on the seeds that do not score: one at a time, each on the scenarios it bears on."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import msgspec

from agent.config.settings import VerdictSettings
from benchmarks.faultbench.play import Run
from benchmarks.faultbench.scenario import Scenario
from benchmarks.faultbench.score import Score, score

SEEDS: Final = 6
"""Tuning seeds each candidate is tried on."""


class Candidate(msgspec.Struct, frozen=True):
    """A setting, the family of scenarios it bears on, the values tried."""

    family: str
    section: str
    key: str
    values: tuple[float, ...]

    @property
    def dotted(self) -> str:
        """Return section and key."""
        return f"{self.section}.{self.key}"


class Choice(msgspec.Struct, frozen=True):
    """What was tried and what was taken."""

    candidate: Candidate
    shipped: float
    chosen: float
    quality: dict[float, float]
    """Recall less the share of runs in which something wrong was said, by value."""


CANDIDATES: Final = (
    Candidate("throttle", "throttle", "share", (0.03, 0.05, 0.2, 0.3)),
    Candidate("throttle", "throttle", "low_clock_ratio", (0.6, 0.7, 0.85)),
    Candidate("throttle", "throttle", "resistance_rise", (0.1, 0.15, 0.3)),
    Candidate("memory", "memory", "corrected_per_hour", (30.0, 300.0)),
    Candidate("memory", "memory", "corrected_times_peers", (3.0, 30.0)),
    Candidate("links", "link", "bit_error_rate", (1e-13, 3e-13, 1e-11)),
    Candidate("links", "link", "nvlink_errors_per_hour", (3.0, 30.0)),
    Candidate("workload", "input_bound", "duty", (0.65, 0.7, 0.8, 0.85)),
    Candidate("workload", "input_bound", "computing_cores", (0.6, 0.7, 0.9, 1.2)),
)

Job = tuple[Scenario, int, VerdictSettings]
PlayAll = Callable[[Iterable[Job]], list[tuple[Scenario, Run]]]


def tuned(scenarios: Sequence[Scenario], seeds: Sequence[int], play_all: PlayAll) -> list[Choice]:
    """Return the choice for each setting that scenarios bear on."""
    return [
        _choose(candidate, family, seeds[:SEEDS], play_all)
        for candidate in CANDIDATES
        if (family := [scenario for scenario in scenarios if scenario.family == candidate.family])
    ]


def limits_of(choices: Iterable[Choice]) -> VerdictSettings:
    """Return the settings with every choice made."""
    limits = VerdictSettings()
    for choice in choices:
        limits = with_value(limits, choice.candidate, choice.chosen)
    return limits


def with_value(limits: VerdictSettings, candidate: Candidate, value: float) -> VerdictSettings:
    """Return ``limits`` with one setting changed."""
    section = msgspec.structs.replace(getattr(limits, candidate.section), **{candidate.key: value})
    return msgspec.structs.replace(limits, **{candidate.section: section})


def _choose(candidate: Candidate, scenarios: Sequence[Scenario], seeds: Sequence[int], play_all: PlayAll) -> Choice:
    """Return the best value; the shipped one where none is better."""
    shipped = float(getattr(getattr(VerdictSettings(), candidate.section), candidate.key))
    quality = {}
    for value in sorted((*candidate.values, shipped)):
        limits = with_value(VerdictSettings(), candidate, value)
        quality[value] = _quality(score(play_all([(s, seed, limits) for s in scenarios for seed in seeds])))
    best = max(quality.values())
    chosen = shipped if quality[shipped] == best else next(value for value, q in quality.items() if q == best)
    return Choice(candidate, shipped, chosen, quality)


def _quality(total: Score) -> float:
    wrong = sum(rule.wrong + rule.lingered for rule in total.rules.values())
    return total.recall - wrong / max(1, total.runs)
