"""Tests of agent.verdicts.engine."""

import time
from collections.abc import Callable, Iterable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from agent.config.settings import Settings, VerdictSettings
from agent.model.allocation import Allocation
from agent.model.snapshot import Card, NvmlHealth, Snapshot
from agent.model.verdict import RuleMode
from agent.model.vocabulary import CARD_STATES, NODE_STATES, WORKLOAD_STATES
from agent.verdicts.engine import Engine, Judgement, Rules
from agent.verdicts.view import CardRule, CardView, Conclusion, Facts, Inputs, NodeRule, NodeView
from tests.support.clock import FakeClock
from tests.support.records import record
from tests.support.snapshots import busy_values, h200_values, identity, uuid_of
from tests.support.views import MemoryDocuments, card_of

Judge = Callable[[CardView, VerdictSettings], Conclusion | None]
UP = NvmlHealth(up=True)


class Bench:
    """An engine with a clock that ticks once a second."""

    def __init__(
        self, rules: Rules, documents: MemoryDocuments | None = None, modes: dict[str, RuleMode] | None = None
    ) -> None:
        """Make the engine."""
        self.clock = FakeClock()
        self.documents = documents or MemoryDocuments()
        chosen = Settings(verdicts=VerdictSettings(rules=modes or {}))
        self.engine = Engine(chosen, rules, self.documents, self.clock)

    def tick(
        self, cards: Iterable[Card] = (), facts: Facts | None = None, nvml: NvmlHealth = UP, seconds: float = 1.0
    ) -> Judgement:
        """Judge one tick."""
        self.clock.advance(seconds)
        snapshot = Snapshot(self.clock.monotonic_s(), self.clock.wall_s(), cards=tuple(cards), nvml=nvml)
        return self.engine.judge(snapshot, facts or NO_FACTS)


NO_FACTS = Facts()


def says(state: str, cause: str = "cause", *, suspect: bool = False) -> Conclusion:
    """Return a conclusion."""
    return Conclusion(state=state, cause=cause, summary="Summary.", next_action="Act.", suspect=suspect)


def rule(name: str, judge: Judge, mode: RuleMode = "on", inputs: Inputs = "readings") -> CardRule:
    """Return a card rule."""
    return CardRule(name, judge, mode, inputs)


def hot(view: CardView, _: VerdictSettings) -> Conclusion | None:
    """Hold above 80 °C."""
    return says("throttled", "hot") if view.card.values.get("temperature_celsius", 0) > 80 else None


def raising(view: CardView, _: VerdictSettings) -> Conclusion | None:
    """Fail."""
    raise RuntimeError(view.card.identity.uuid)


def only(*rules: CardRule) -> Rules:
    """Return rules without node rules."""
    return Rules(cards=rules, node=())


def test_a_finding_carries_rule_and_since() -> None:
    """The time is when it began, not now."""
    bench = Bench(only(rule("hot", hot)))
    bench.tick([card_of(0, {"temperature_celsius": 70})])
    began_s = bench.tick([card_of(0, {"temperature_celsius": 90})]) and bench.clock.wall_s()
    verdict = bench.tick([card_of(0, {"temperature_celsius": 90})]).cards[0]

    assert (verdict.state, verdict.since_wall_s, verdict.uuid) == ("throttled", began_s, uuid_of(0))
    assert [(f.rule, f.cause, f.since_wall_s) for f in verdict.findings] == [("hot", "hot", began_s)]


def test_who_holds_a_card_is_named_where_it_is_their_business() -> None:
    """Throttling names the pod or job; a fault of the card itself does not."""
    bench = Bench(only(rule("hot", hot), rule("worn", lambda _view, _: says("faulty"))))
    card = card_of(0, {"temperature_celsius": 90})
    held = (Allocation(uuid_of(0), "ml", "a", "train"), Allocation(uuid_of(0), job="7"))
    snapshot = Snapshot(bench.clock.monotonic_s(), 0.0, cards=(card,), nvml=UP, allocations=held)

    findings = bench.engine.judge(snapshot, NO_FACTS).cards[0].findings

    assert {finding.rule: finding.summary for finding in findings} == {
        "hot": "Summary. Held by pod ml/a (container train), Slurm job 7.",
        "worn": "Summary.",
    }


def test_a_raising_rule_costs_only_itself() -> None:
    """The others speak; it is counted each time and logged once."""
    bench = Bench(only(rule("broken", raising), rule("hot", hot)))

    with capture_logs() as logs:
        judgements = [bench.tick([card_of(0, {"temperature_celsius": 90})]) for _ in range(3)]

    assert judgements[-1].cards[0].state == "throttled"
    assert judgements[-1].rule_errors == {"broken": 3, "hot": 0}
    assert [entry["rule"] for entry in logs if entry["event"] == "rule_failed"] == ["broken"]


def test_a_rule_that_is_off_is_not_asked() -> None:
    """Not even to count its errors."""
    judgement = Bench(only(rule("broken", raising)), modes={"broken": "off"}).tick([card_of(0, {})])

    assert (judgement.rule_errors, judgement.cards[0].state) == ({"broken": 0}, "ok")


def test_a_shadow_is_exported_and_moves_nothing() -> None:
    """Its finding is marked; it neither makes a state nor asks for a probe."""
    suspicious = rule("s", lambda *_: says("faulty", suspect=True), "shadow")
    judgement = Bench(only(suspicious)).tick([card_of(0, {})])

    assert judgement.cards[0].state == "ok"
    assert [finding.shadow for finding in judgement.cards[0].findings] == [True]
    assert judgement.suspects == frozenset()


def test_the_configuration_overrules_a_rules_mode() -> None:
    """A rule shipped in shadow can be switched on."""
    shadowed = rule("s", lambda *_: says("faulty"), "shadow")

    assert Bench(only(shadowed), modes={"s": "on"}).tick([card_of(0, {})]).cards[0].state == "faulty"


def test_suspects_are_named() -> None:
    """Only cards about which a probe would tell more."""
    doubt = rule("doubt", lambda view, _: says("ok", suspect=True) if view.card.identity.index == 1 else None)

    assert Bench(only(doubt)).tick([card_of(0, {}), card_of(1, {})]).suspects == {uuid_of(1)}


def test_rules_on_probes_are_asked_only_for_news() -> None:
    """Once at the start, then when the history is another."""
    asked: list[int] = []

    def count(view: CardView, _: VerdictSettings) -> Conclusion | None:
        asked.append(len(view.probes))
        return says("degraded") if view.probes else None

    bench = Bench(only(rule("slow", count, inputs="probes")))
    facts = Facts(probes=(record(1.0, uuid=uuid_of(0)), record(1.0, uuid=uuid_of(1))))
    cards = [card_of(0, {})]
    bench.tick(cards)
    states = [bench.tick(cards, facts).cards[0].state for _ in range(5)]

    assert asked == [0, 1]
    assert states == ["degraded"] * 5


def test_rules_on_minutes_are_asked_once_a_minute() -> None:
    """Three minutes of ticks are the start and two full minutes."""
    asked: list[float] = []
    slow = rule("slow", lambda view, _: asked.append(view.now_monotonic_s), inputs="minutes")
    bench = Bench(only(slow))
    for _ in range(130):
        bench.tick([card_of(0, {"power_watts": 1.0})])

    assert len(asked) == 3


def test_a_rule_learns_whether_it_held() -> None:
    """So that what is in may use another threshold to get out."""

    def sticky(view: CardView, _: VerdictSettings) -> Conclusion | None:
        limit = 70 if "sticky" in view.held else 80
        return says("throttled") if view.card.values["temperature_celsius"] > limit else None

    bench = Bench(only(rule("sticky", sticky)))
    states = [bench.tick([card_of(0, {"temperature_celsius": t})]).cards[0].state for t in (75, 85, 75, 65, 75)]

    assert states == ["ok", "throttled", "throttled", "ok", "ok"]


def test_peers_are_the_other_cards_of_the_model() -> None:
    """Mixed boards are not compared."""
    seen: dict[int, list[int]] = {}

    def look(view: CardView, _: VerdictSettings) -> None:
        seen[view.card.identity.index] = [peer.card.identity.index for peer in view.peers]

    other = Card(identity(2, name="NVIDIA L4"))
    Bench(only(rule("look", look))).tick([card_of(0, {}), card_of(1, {}), other])

    assert seen == {0: [1], 1: [0], 2: []}


def test_a_node_finding_replaces_what_it_explains() -> None:
    """Eight lost cards and a dead driver are one fault; the cards are unknown."""
    node = NodeRule("down", lambda view, _: None if view.nvml.up else says("nvml_down"), covers=("lost",))
    lost = rule("lost", lambda *_: says("lost"))
    bench = Bench(Rules(cards=(lost,), node=(node,)))

    up = bench.tick([card_of(n, {}) for n in range(8)])
    down = bench.tick([card_of(n, {}) for n in range(8)], nvml=NvmlHealth(up=False))

    assert {verdict.state for verdict in up.cards} == {"lost"}
    assert down.node.state == "nvml_down"
    assert {verdict.state for verdict in down.cards} == {"unknown"}
    assert {finding.rule for verdict in down.cards for finding in verdict.findings} == {"down"}


def test_a_node_finding_that_is_explained_is_left_out() -> None:
    """A dead driver explains missing cards."""
    down = NodeRule("down", lambda *_: says("nvml_down"), covers=("missing",))
    missing = NodeRule("missing", lambda *_: says("gpu_missing"))

    judgement = Bench(Rules(cards=(), node=(down, missing))).tick()

    assert [finding.rule for finding in judgement.node.findings] == ["down"]


def test_each_change_is_one_line_of_log() -> None:
    """Raised and cleared, bound to the card."""
    bench = Bench(only(rule("hot", hot)))

    with capture_logs() as logs:
        for celsius in (70, 90, 90, 90, 70, 70):
            bench.tick([card_of(0, {"temperature_celsius": celsius})])

    assert [(e["event"], e["log_level"], e["uuid"], e["rule"]) for e in logs] == [
        ("verdict_began", "warning", uuid_of(0), "hot"),
        ("verdict_ended", "info", uuid_of(0), "hot"),
    ]


def test_since_outlives_a_restart_of_the_agent() -> None:
    """Finding and state keep their times."""
    documents = MemoryDocuments()
    first = Bench(only(rule("hot", hot)), documents)
    before = first.tick([card_of(0, {"temperature_celsius": 90})]).cards[0]
    second = Bench(only(rule("hot", hot)), documents)
    second.clock.advance(300)
    second.tick([card_of(0, {"temperature_celsius": 20})])
    after = second.tick([card_of(0, {"temperature_celsius": 90})]).cards[0]

    assert after.since_wall_s == before.since_wall_s
    assert after.findings[0].since_wall_s == before.findings[0].since_wall_s


def test_a_card_that_went_away_is_forgotten() -> None:
    """After five minutes it starts anew; memory is bounded by the cards there are."""
    seen: list[int] = []
    look = rule("look", lambda view, _: seen.append(len(view.recent.times_s)))
    bench = Bench(only(look))
    for _ in range(5):
        bench.tick([card_of(0, {"power_watts": 1.0})])
    for _ in range(31):
        bench.tick([], seconds=10)
    bench.tick([card_of(0, {"power_watts": 1.0})])

    assert seen == [1, 2, 3, 4, 5, 1]


def test_the_shipped_rules_judge_a_healthy_card_ok() -> None:
    """A card at its power cap is fine after the third tick; the cap is mentioned."""
    bench = Bench(Rules(), modes={"unjudged": "off"})
    judgements = [bench.tick([card_of(0, busy_values())]) for _ in range(40)]

    assert [j.cards[0].state for j in judgements[:4]] == ["unknown", "unknown", "ok", "ok"]
    assert [finding.rule for finding in judgements[-1].cards[0].findings] == ["power_cap"]
    assert judgements[-1].cards[0].workload == "ok"
    assert judgements[-1].node.state == "ok"
    assert not any(judgements[-1].rule_errors.values())


def test_the_shipped_rules_find_nothing_without_cards() -> None:
    """A node without a GPU is a normal node."""
    judgement = [Bench(Rules()).tick(nvml=NvmlHealth(error="LIBRARY_NOT_FOUND")) for _ in range(9)][-1]

    assert (judgement.node.state, judgement.cards) == ("ok", ())


READINGS = st.sampled_from([*h200_values()])
BROKEN_CARDS = st.lists(
    st.builds(
        card_of,
        st.integers(0, 3),
        st.dictionaries(READINGS, st.floats(0, 1e13) | st.sampled_from([0.0, 1.0]), max_size=12),
        lost=st.sampled_from(["", "", "", "GPU_IS_LOST", "HUNG"]),
        processes=st.integers(0, 2),
    ),
    max_size=4,
    unique_by=lambda card: card.identity.index,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.tuples(BROKEN_CARDS, st.booleans(), st.floats(0.01, 400), st.sampled_from([0.0, 0.0, 20.0])),
        min_size=1,
        max_size=12,
    )
)
def test_whatever_comes_every_card_gets_a_verdict_of_the_vocabulary(
    ticks: list[tuple[list[Card], bool, float, float]],
) -> None:
    """Interrupted histories, odd values, cards that come and go: no rule raises, no state is foreign."""
    bench = Bench(Rules())
    for cards, up, seconds, hung_s in ticks:
        judgement = bench.tick(cards, nvml=NvmlHealth(up=up, hung_s=hung_s), seconds=seconds)

        assert not any(judgement.rule_errors.values()), judgement.rule_errors
        assert [verdict.uuid for verdict in judgement.cards] == [card.identity.uuid for card in cards]
        assert {verdict.state for verdict in judgement.cards} <= set(CARD_STATES)
        assert {verdict.workload for verdict in judgement.cards} <= set(WORKLOAD_STATES)
        assert judgement.node.state in NODE_STATES


@settings(max_examples=20, deadline=None)
@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=40, max_size=160), st.integers(1, 60))
def test_a_break_in_the_history_never_invents_a_fault(flags: list[float], gap_s: int) -> None:
    """A card that was never throttled for three ticks in thirty is not called throttled, with or without a gap."""
    quiet = [flag if n % 16 == 0 else 0.0 for n, flag in enumerate(flags)]
    bench = Bench(Rules(), modes={"unjudged": "off"})
    for n, flag in enumerate(quiet):
        values = busy_values(throttle_active_hw_thermal=flag)
        judgement = bench.tick([card_of(0, values)], seconds=gap_s if n == len(quiet) // 2 else 1.0)

        assert judgement.cards[0].state in ("ok", "unknown")


@pytest.mark.parametrize(("cards", "budget_ms"), [(1, 1.5), (16, 8.0)])
def test_a_tick_costs_little(cards: int, budget_ms: float) -> None:
    """The best of five stretches stays within the budget, so that a busy machine does not fail it."""
    bench = Bench(Rules())
    for _ in range(70):
        bench.tick([card_of(n, busy_values()) for n in range(cards)])
    snapshots = [[card_of(n, busy_values()) for n in range(cards)] for _ in range(50)]

    def stretch_ms(part: list[list[Card]]) -> float:
        began_s = time.process_time()
        for one in part:
            bench.tick(one)
        return (time.process_time() - began_s) * 1000 / len(part)

    assert min(stretch_ms(snapshots[n : n + 10]) for n in range(0, 50, 10)) < budget_ms


def test_node_rules_see_the_node() -> None:
    """Facts and views arrive."""
    seen: list[NodeView] = []
    look = NodeRule("look", lambda view, _: seen.append(view))
    facts = Facts(expected_gpus=2, pci_bus_ids=("0000:1b:00.0",), paused=frozenset({uuid_of(0)}))
    Bench(Rules(cards=(), node=(look,))).tick([card_of(0, {})], facts)

    (view,) = seen
    assert (view.expected_gpus, view.pci_bus_ids) == (2, ("0000:1b:00.0",))
    assert view.paused == {uuid_of(0)}
    assert [card.paused for card in view.cards] == [True]
