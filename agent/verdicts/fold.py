"""Many findings, one state: precedence, and node-wide causes in place of one finding per card."""

from collections.abc import Iterable, Sequence

import msgspec

from agent.model.snapshot import Card
from agent.model.verdict import Finding
from agent.model.vocabulary import CARD_STATES, NODE_STATES, CardState, NodeState, WorkloadState

_CARD_RANK: dict[str, int] = {state: rank for rank, state in enumerate(CARD_STATES)}


def counting(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings that may move a state: shadows are left out."""
    return [finding for finding in findings if not finding.shadow]


def card_state(findings: Iterable[Finding]) -> CardState:
    """Return the first state, in order of precedence, that a finding names; ``ok`` without one."""
    ranks = [_CARD_RANK[finding.state] for finding in counting(findings) if finding.state in _CARD_RANK]
    return CARD_STATES[min(ranks)] if ranks else "ok"


def workload_state(findings: Iterable[Finding], card: Card) -> WorkloadState:
    """Return how the work on a card fares; ``none`` where no process is known to be on it."""
    states = {finding.state for finding in counting(findings)}
    if not card.processes:
        return "none"
    if "input_bound" in states:
        return "input_bound"
    return "underused" if "underused" in states else "ok"


def node_state(findings: Sequence[Finding]) -> NodeState:
    """Return the state named by the first finding that counts; ``ok`` without one."""
    named = [finding.state for finding in counting(findings)]
    return next((state for name in named for state in NODE_STATES if state == name != "ok"), "ok")


def without(findings: Iterable[Finding], rules: Iterable[str]) -> tuple[Finding, ...]:
    """Return the findings of all other rules."""
    names = frozenset(rules)
    return tuple(finding for finding in findings if finding.rule not in names)


def cover(findings: Sequence[Finding], covers: Iterable[tuple[Finding, Sequence[str]]]) -> tuple[Finding, ...]:
    """Return a card's findings with those that a node-wide finding explains replaced by a pointer to it.

    ``covers`` are the node findings that count, with the names of the card rules each explains. The card
    is then ``unknown``: what the node's trouble hides is neither a fault of the card nor healthy.
    """
    for node, names in covers:
        explained = [finding for finding in counting(findings) if finding.rule in names]
        if explained:
            since_wall_s = min(finding.since_wall_s for finding in explained)
            pointer = msgspec.structs.replace(node, state="unknown", since_wall_s=since_wall_s)
            findings = (*without(findings, names), pointer)
    return tuple(findings)
