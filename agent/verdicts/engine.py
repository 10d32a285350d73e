"""From one tick to verdicts: remember, look back, ask every rule, date and fold the answers."""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec
import structlog

from agent.clock import Clock
from agent.config.settings import Settings, VerdictSettings
from agent.model.allocation import Allocation
from agent.model.snapshot import Card, Snapshot
from agent.model.verdict import CardVerdict, Finding, NodeVerdict, RuleMode
from agent.verdicts.fold import card_state, counting, cover, node_state, without, workload_state
from agent.verdicts.memory import Memory
from agent.verdicts.registry import CARD_RULES, NODE_RULES
from agent.verdicts.since import Documents, Key, SinceTable
from agent.verdicts.view import CardRule, CardView, Conclusion, Facts, Inputs, NodeRule, NodeView

NODE: Final = "node"
"""The subject of node rules, where a card's UUID stands for card rules."""
STATE: Final = "state"
"""Stands for the folded state where a rule's name stands else in the table of transition times."""
_HOLDERS_BUSINESS: Final = frozenset({"throttled", "input_bound", "underused"})
"""States that concern whoever holds the card, so that they are named."""

_log = structlog.get_logger("verdicts")
_View = TypeVar("_View", CardView, NodeView)
_Findings = tuple[Finding, ...]


def holders(allocations: Sequence[Allocation]) -> Mapping[str, str]:
    """Return a sentence on who holds each card that somebody holds, by its UUID."""
    names: dict[str, list[str]] = {}
    for allocation in allocations:
        names.setdefault(allocation.uuid, []).append(allocation.holder)
    return {uuid: f" Held by {', '.join(who)}." for uuid, who in names.items()}


_QUIET_STATES: Final = ("ok", "unknown")
"""Nothing to wake anybody for: every card is unknown for a moment after each start."""


class Judgement(msgspec.Struct, frozen=True):
    """What one tick's judgement says."""

    cards: tuple[CardVerdict, ...]
    node: NodeVerdict
    suspects: frozenset[str] = frozenset()
    """UUIDs of cards about which a probe soon would tell more."""
    rule_errors: Mapping[str, int] = MappingProxyType({})
    """How often each rule has raised since the start; every rule exists at 0."""


class Rules(msgspec.Struct, frozen=True):
    """The rules in order: the first node rule that holds names the node's state."""

    cards: tuple[CardRule, ...] = CARD_RULES
    node: tuple[NodeRule, ...] = NODE_RULES


class Engine:
    """Judges every tick, on one thread.

    A rule that raises costs only itself: it does not hold, is counted, and is logged once.
    """

    def __init__(self, settings: Settings, rules: Rules, documents: Documents, clock: Clock) -> None:
        self._thresholds = settings.verdicts
        every: tuple[CardRule | NodeRule, ...] = (*rules.cards, *rules.node)
        modes = settings.verdicts.rules
        self._modes: dict[str, RuleMode] = {rule.name: modes.get(rule.name, rule.mode) for rule in every}
        self._card_rules = tuple(rule for rule in rules.cards if self._modes[rule.name] != "off")
        self._node_rules = tuple(rule for rule in rules.node if self._modes[rule.name] != "off")
        self._covers = {rule.name: rule.covers for rule in rules.node}
        self._order = {rule.name: place for place, rule in enumerate(self._card_rules)}
        self._memory = Memory(settings.agent.tick_s, settings.verdicts.input_bound.window_s, documents)
        self._since = SinceTable(documents, "verdicts", clock.monotonic_s())
        self._state_since = SinceTable(documents, "states", clock.monotonic_s())
        self._held: dict[str, dict[str, Conclusion]] = {}
        self._holders: Mapping[str, str] = {}
        self._errors = dict.fromkeys(self._modes, 0)

    def judge(self, snapshot: Snapshot, facts: Facts) -> Judgement:
        """Return the verdicts on one tick; ``snapshot`` comes without verdicts."""
        self._holders = holders(snapshot.allocations)
        due = self._memory.remember(snapshot, facts)
        cards = self._memory.card_views(snapshot, self._held)
        node = self._memory.node_view(snapshot, cards)
        held = {view.card.identity.uuid: self._ask_card(view, due[view.card.identity.uuid]) for view in cards}
        self._held = {**held, NODE: self._ask_node(node)}
        return self._conclude(snapshot)

    def _ask_card(self, view: CardView, due: Collection[Inputs]) -> dict[str, Conclusion]:
        """Ask the rules whose inputs are new; the others' answers stand. The answers come in the rules' order."""
        held = dict(self._held.get(view.card.identity.uuid, {}))
        for rule in self._card_rules:
            if rule.inputs not in due:
                continue
            found = self._ask(rule.name, rule.judge, view)
            if found is None:
                held.pop(rule.name, None)
            else:
                held[rule.name] = found
        return dict(sorted(held.items(), key=lambda item: self._order[item[0]]))

    def _ask_node(self, view: NodeView) -> dict[str, Conclusion]:
        """Ask the node rules, all at each tick."""
        answers = {rule.name: self._ask(rule.name, rule.judge, view) for rule in self._node_rules}
        return {name: found for name, found in answers.items() if found is not None}

    def _ask(
        self, name: str, judge: Callable[[_View, VerdictSettings], Conclusion | None], view: _View
    ) -> Conclusion | None:
        """Return the rule's answer; None where it raises."""
        try:
            return judge(view, self._thresholds)
        except Exception as error:  # noqa: BLE001 - one rule's fault must not take the others' verdicts
            self._errors[name] += 1
            if self._errors[name] == 1:
                _log.error("rule_failed", rule=name, error=repr(error), exc_info=True)
            return None

    def _conclude(self, snapshot: Snapshot) -> Judgement:
        """Date the conclusions, fold them, log what began and what ended."""
        now_s, wall_s = snapshot.taken_monotonic_s, snapshot.taken_wall_s
        present = {
            (subject, name, found.cause): found
            for subject, by_rule in self._held.items()
            for name, found in by_rule.items()
        }
        began, ended = self._since.update(present.keys(), now_s, wall_s)
        self._log_changes(began, ended, present)
        findings = self._fold()
        states = {subject: node_state(f) if subject == NODE else card_state(f) for subject, f in findings.items()}
        self._state_since.update({(subject, STATE, state) for subject, state in states.items()}, now_s, wall_s)
        return Judgement(
            cards=tuple(self._card_verdict(card, findings[card.identity.uuid]) for card in snapshot.cards),
            node=self._node_verdict(findings[NODE]),
            suspects=frozenset(uuid for uuid, by_rule in self._held.items() if self._suspect(by_rule)),
            rule_errors=MappingProxyType(dict(self._errors)),
        )

    def _fold(self) -> dict[str, _Findings]:
        """Return the findings of each subject, with node-wide causes in place of what they explain."""
        findings = {subject: self._findings(subject, by_rule) for subject, by_rule in self._held.items()}
        covers = [(found, self._covers[found.rule]) for found in counting(findings[NODE])]
        node = without(findings[NODE], [name for _, names in covers for name in names])
        cards = {subject: cover(found, covers) for subject, found in findings.items() if subject != NODE}
        return {**cards, NODE: node}

    def _findings(self, subject: str, by_rule: Mapping[str, Conclusion]) -> _Findings:
        """Return conclusions as findings."""
        return tuple(
            Finding(
                rule=name,
                state=found.state,
                cause=found.cause,
                summary=found.summary + (self._holders.get(subject, "") if found.state in _HOLDERS_BUSINESS else ""),
                next_action=found.next_action,
                since_wall_s=self._since[subject, name, found.cause],
                evidence=found.evidence,
                shadow=self._modes[name] == "shadow",
            )
            for name, found in by_rule.items()
        )

    def _card_verdict(self, card: Card, findings: _Findings) -> CardVerdict:
        """Return one card's verdict."""
        uuid, state = card.identity.uuid, card_state(findings)
        return CardVerdict(
            gpu=card.identity.index,
            uuid=uuid,
            state=state,
            workload=workload_state(findings, card),
            since_wall_s=self._state_since[uuid, STATE, state],
            findings=findings,
        )

    def _node_verdict(self, findings: _Findings) -> NodeVerdict:
        """Return the node's verdict."""
        state = node_state(findings)
        return NodeVerdict(state=state, since_wall_s=self._state_since[NODE, STATE, state], findings=findings)

    def _suspect(self, by_rule: Mapping[str, Conclusion]) -> bool:
        """Return whether a rule that counts asks for a probe."""
        return any(found.suspect and self._modes[name] == "on" for name, found in by_rule.items())

    def _log_changes(self, began: Collection[Key], ended: Collection[Key], present: Mapping[Key, Conclusion]) -> None:
        """Write one line for each thing that began or ended."""
        for subject, rule, cause in sorted(began):
            found = present[subject, rule, cause]
            quiet = found.state in _QUIET_STATES or self._modes[rule] == "shadow"
            log = _log.bind(uuid=subject, rule=rule, cause=cause, state=found.state)
            (log.info if quiet else log.warning)("verdict_began", summary=found.summary)
        for subject, rule, cause in sorted(ended):
            _log.info("verdict_ended", uuid=subject, rule=rule, cause=cause)
