"""Tests of agent.verdicts.registry."""

import pkgutil

from agent.model.vocabulary import CARD_STATES, NODE_STATES, RULE_NAMES, WORKLOAD_STATES
from agent.verdicts import rules
from agent.verdicts.registry import CARD_RULES, NODE_RULES
from agent.verdicts.view import CardRule, NodeRule

EVERY: tuple[CardRule | NodeRule, ...] = (*CARD_RULES, *NODE_RULES)


def test_every_rule_is_registered_under_its_own_name() -> None:
    """A rule's file that nobody registers would never speak."""
    files = {module.name for module in pkgutil.iter_modules(rules.__path__)} - {"common"}
    registered = {rule.judge.__module__.rpartition(".")[2] for rule in EVERY} - {"input_bound"}

    assert files == registered
    assert len({rule.name for rule in EVERY}) == len(EVERY)


def test_node_rules_cover_rules_that_exist() -> None:
    """A misspelt name would let eight alarms through."""
    names = {rule.name for rule in EVERY}

    assert {covered for rule in NODE_RULES for covered in rule.covers} <= names


def test_the_vocabularies_do_not_overlap_beyond_ok() -> None:
    """A finding's state tells whether it is about card, workload or node."""
    assert set(CARD_STATES) & set(NODE_STATES) == {"ok"}
    assert set(CARD_STATES) & set(WORKLOAD_STATES) == {"ok"}


def test_the_vocabulary_names_every_rule() -> None:
    """Configuration and metrics know a rule by it."""
    assert tuple(rule.name for rule in EVERY) == RULE_NAMES
