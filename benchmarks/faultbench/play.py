"""One scenario under one seed, through the real engine: what was said, about whom, from when to when."""

from collections.abc import Mapping

import msgspec

from agent.config.settings import AgentSettings, Settings, VerdictSettings
from agent.verdicts.engine import Engine, Judgement, Rules
from benchmarks.faultbench.baselines import Scrape, exporter_alerts, score_alerts
from benchmarks.faultbench.scenario import Scenario, Values
from benchmarks.faultbench.world import WALL_S, World, thermal_history

NODE = "node"
STARTING = ("no_telemetry", "starting")
PROBED = ("probes", "degraded")
"""Families in which cards are probed; in the others a card is not held to be unknown for want of a probe."""
SCRAPE_S = 15.0
TAIL_S = 2700.0
"""How long things go on as they are after the end for the baselines, whose alerts wait for minutes."""

Said = tuple[str, str, str, str]
"""Subject (a card's index or ``node``), rule, cause, state."""


class Run(msgspec.Struct, frozen=True):
    """What one run led to."""

    said: Mapping[Said, tuple[tuple[float, float], ...]]
    """First and last moment of each stretch in which something was said."""
    moments: Mapping[float, float]
    """When the changes came under this seed, by the time written."""
    end_s: float
    card_states: tuple[str, ...]
    node_state: str
    workloads: tuple[str, ...]
    exporter: tuple[tuple[float, str], ...]
    """Time and subject of each alert of the exporters' rules."""
    zscore: tuple[tuple[float, str], ...]
    rule_errors: int


class _Clock:
    """Stands at the start: the engine asks for it once."""

    def monotonic_s(self) -> float:
        return 0.0

    def wall_s(self) -> float:
        return WALL_S


class _Documents:
    """Keeps documents in memory."""

    def __init__(self, documents: dict[str, bytes]) -> None:
        self._documents = documents

    def load_document(self, name: str) -> bytes | None:
        return self._documents.get(name)

    def save_document(self, name: str, data: bytes) -> None:
        self._documents[name] = data


class _Log:
    """Joins what is said in one tick to stretches."""

    def __init__(self, tick_s: float) -> None:
        self._tick_s = tick_s
        self.stretches: dict[Said, list[tuple[float, float]]] = {}

    def add(self, now_s: float, judgement: Judgement) -> None:
        """Take one judgement in."""
        for verdict in judgement.cards:
            for finding in verdict.findings:
                if (finding.rule, finding.cause) != STARTING and not finding.shadow:
                    self._extend((str(verdict.gpu), finding.rule, finding.cause, finding.state), now_s)
        for finding in judgement.node.findings:
            if not finding.shadow:
                self._extend((NODE, finding.rule, finding.cause, finding.state), now_s)

    def _extend(self, said: Said, now_s: float) -> None:
        stretches = self.stretches.setdefault(said, [])
        if stretches and now_s - stretches[-1][1] <= 1.5 * self._tick_s:
            stretches[-1] = (stretches[-1][0], now_s)
        else:
            stretches.append((now_s, now_s))


def play(scenario: Scenario, profiles: Mapping[str, Values], seed: int, limits: VerdictSettings) -> Run:
    """Play ``scenario`` and return what was said."""
    history = thermal_history(scenario, seed)
    documents = _Documents({} if history is None else {"thermal_resistance": history})
    if scenario.family not in PROBED:
        limits = msgspec.structs.replace(limits, rules={**limits.rules, "unjudged": "off"})
    settings = Settings(agent=AgentSettings(tick_s=min(60.0, scenario.tick_s)), verdicts=limits)
    engine = Engine(settings, Rules(), documents, _Clock())  # type: ignore[arg-type]  # waits for nothing
    world = World(scenario, profiles, seed, limits)
    log = _Log(scenario.tick_s)
    scrapes: list[Scrape] = []
    judgement: Judgement | None = None
    for now_s, snapshot, facts in world.ticks():
        judgement = engine.judge(snapshot, facts)
        log.add(now_s, judgement)
        world.suspect(judgement.suspects, now_s)
        if not scrapes or now_s - scrapes[-1][0] >= SCRAPE_S:
            scrapes.append((now_s, snapshot))
    assert judgement is not None
    scrapes += world.after(TAIL_S, 2 * SCRAPE_S)
    return Run(
        said={said: tuple(stretches) for said, stretches in log.stretches.items()},
        moments={change.at_s: world.moment(change.at_s) for change in scenario.change},
        end_s=scenario.duration_s,
        card_states=tuple(verdict.state for verdict in judgement.cards),
        node_state=judgement.node.state,
        workloads=tuple(verdict.workload for verdict in judgement.cards),
        exporter=tuple(exporter_alerts(scrapes, scenario.cards)),
        zscore=tuple((wall_s - WALL_S, subject) for wall_s, subject in score_alerts(world.records)),
        rule_errors=sum(judgement.rule_errors.values()),
    )
