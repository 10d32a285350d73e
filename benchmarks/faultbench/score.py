"""Right, wrong, how soon: runs against what their scenario expects."""

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from agent.model.vocabulary import NODE_STATES, WORKLOAD_STATES
from benchmarks.faultbench.play import NODE, Run, Said
from benchmarks.faultbench.scenario import Expect, Scenario

QUIET_STATES = ("ok", "underused")
"""States that raise no alarm."""


NOT_YET = "unjudged"
"""Says that no probe has told anything yet: right while a reference is learnt, and no alarm."""


ASKS_FOR_A_PROBE = ("suspected", "witness")
"""Causes that only have a card probed again."""


class RuleScore(msgspec.Struct):
    """How one rule did over all runs."""

    expected: int = 0
    found: int = 0
    wrong: int = 0
    """Runs in which it held without being asked for."""
    lingered: int = 0
    """Runs in which it held on after its cause was gone."""
    seconds: list[float] = msgspec.field(default_factory=list)

    @property
    def recall(self) -> float | None:
        """Share of what was expected that was found in time; None where nothing was."""
        return self.found / self.expected if self.expected else None

    @property
    def precision(self) -> float | None:
        """Share of what it said that was right; None where it said nothing."""
        return self.found / (self.found + self.wrong) if self.found + self.wrong else None


class Score(msgspec.Struct):
    """How all did."""

    rules: dict[str, RuleScore]
    runs: int = 0
    healthy_runs: int = 0
    false_alarms: Counter[str] = msgspec.field(default_factory=Counter)
    """Alarms that nobody asked for, by scenario and rule."""
    missed: Counter[str] = msgspec.field(default_factory=Counter)
    confusion: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    """True and said state at the end."""
    healthy_alarmed: int = 0
    baseline_found: Counter[str] = msgspec.field(default_factory=Counter)
    baseline_healthy_alarmed: Counter[str] = msgspec.field(default_factory=Counter)
    baseline_families: dict[str, Counter[str]] = msgspec.field(default_factory=lambda: defaultdict(Counter))
    rule_errors: int = 0

    @property
    def expected(self) -> int:
        """How much was expected to be said."""
        return sum(rule.expected for rule in self.rules.values())

    @property
    def recall(self) -> float:
        """Share of it that was said in time."""
        return sum(rule.found for rule in self.rules.values()) / max(1, self.expected)


def score(results: Iterable[tuple[Scenario, Run]]) -> Score:
    """Score every run."""
    total = Score(rules=defaultdict(RuleScore))
    for scenario, run in results:
        total.runs += 1
        total.rule_errors += run.rule_errors
        alarmed = _rules(scenario, run, total)
        if scenario.healthy:
            total.healthy_runs += 1
            total.healthy_alarmed += alarmed
        _baselines(scenario, run, total)
        total.confusion[scenario.state, said_state(scenario, run)] += 1
    return total


def said_state(scenario: Scenario, run: Run) -> str:
    """Return what was said at the end about what the scenario labels: node, workload or first card."""
    if scenario.state in NODE_STATES and scenario.state != "ok":
        return run.node_state
    if scenario.state in WORKLOAD_STATES and scenario.state != "ok":
        return run.workloads[0]
    if run.node_state != "ok":
        return run.node_state
    return run.card_states[0] if run.card_states else "ok"


def _rules(scenario: Scenario, run: Run, total: Score) -> bool:
    """Score each rule; return whether there was a false alarm."""
    for expect in scenario.expect:
        rule = total.rules[expect.rule]
        rule.expected += 1
        began_s = run.moments.get(expect.from_s, expect.from_s)
        first_s = _first(run.said, expect, began_s)
        if first_s is None or first_s > began_s + expect.within_s:
            total.missed[f"{scenario.name}: {expect.rule}"] += 1
        else:
            rule.found += 1
            rule.seconds.append(first_s - began_s)
        if expect.until_s is not None:
            silent_s = run.moments.get(expect.until_s, expect.until_s) + expect.within_s
            rule.lingered += any(last_s > silent_s for _, last_s in _stretches(run.said, expect))
    unasked = [said for said in run.said if not _asked_for(scenario, run, said)]
    for name in {said[1] for said in unasked}:
        total.rules[name].wrong += 1
    alarms = {said for said in unasked if said[3] not in QUIET_STATES}
    for _, name, cause, state in alarms:
        total.false_alarms[f"{scenario.name}: {name} ({state}, {cause})"] += 1
    return bool(alarms)


def _asked_for(scenario: Scenario, run: Run, said: Said) -> bool:
    """Return whether what was said was expected or allowed, and not before its cause."""
    if said[1] in scenario.allow or said[1] == NOT_YET or said[2] in ASKS_FOR_A_PROBE:
        return True
    for expect in scenario.expect:
        if said in _matching(run.said, expect):
            began_s = run.moments.get(expect.from_s, expect.from_s)
            return all(first_s >= began_s for first_s, _ in run.said[said])
    return any(expect.rule == said[1] and expect.gpu is None and said[3] == "unknown" for expect in scenario.expect)


def _matching(said: Mapping[Said, object], expect: Expect) -> list[Said]:
    """Return what was said of the kind that is expected."""
    subject = NODE if expect.gpu is None else str(expect.gpu)
    return [
        one
        for one in said
        if one[:2] == (subject, expect.rule) and expect.cause in ("", one[2]) and expect.state in ("", one[3])
    ]


def _stretches(said: Mapping[Said, Sequence[tuple[float, float]]], expect: Expect) -> list[tuple[float, float]]:
    return [stretch for one in _matching(said, expect) for stretch in said[one]]


def _first(said: Mapping[Said, Sequence[tuple[float, float]]], expect: Expect, began_s: float) -> float | None:
    """Return when it was said first at or after its cause."""
    return min(
        (max(first_s, began_s) for first_s, last_s in _stretches(said, expect) if last_s >= began_s), default=None
    )


def _baselines(scenario: Scenario, run: Run, total: Score) -> None:
    """Score both baselines: any alert about the right subject, however late and whatever it says, is a find."""
    for name, alerts in (("exporter rules", run.exporter), ("z-score", run.zscore)):
        if scenario.healthy:
            total.baseline_healthy_alarmed[name] += bool(alerts)
        for expect in scenario.expect:
            if expect.state in QUIET_STATES:
                continue
            began_s = run.moments.get(expect.from_s, expect.from_s)
            subjects = {NODE} if expect.gpu is None else {NODE, str(expect.gpu)}
            found = any(at_s >= began_s and subject in subjects for at_s, subject in alerts)
            total.baseline_found[name] += found
            total.baseline_families[scenario.family][name] += found
    serious = sum(expect.state not in QUIET_STATES for expect in scenario.expect)
    total.baseline_found["of"] += serious
    total.baseline_families[scenario.family]["of"] += serious


def median(values: Sequence[float]) -> float | None:
    """Return the median; None of nothing."""
    return statistics.median(values) if values else None
