"""Tests of benchmarks.faultbench.scenario."""

from pathlib import Path

import pytest

from agent.model.quantities import BY_KEY
from agent.model.vocabulary import CARD_STATES, NODE_STATES, WORKLOAD_STATES
from agent.verdicts.registry import CARD_RULES, NODE_RULES
from benchmarks.faultbench.scenario import load_profiles, load_scenarios

SCENARIOS = load_scenarios()
RULES = {rule.name for rule in CARD_RULES} | {rule.name for rule in NODE_RULES}
STATISTICAL = {"fell_together", "unjudged"}
"""Said in place of others: by `host_slow` for the node, and while nothing is known."""


def test_there_are_enough_and_half_of_them_are_healthy() -> None:
    """At least sixty; health is as well labelled as faults are."""
    healthy = sum(scenario.healthy for scenario in SCENARIOS)

    assert len(SCENARIOS) >= 60
    assert 0.45 <= healthy / len(SCENARIOS) <= 0.6


def test_every_rule_is_expected_by_a_scenario() -> None:
    """A rule without one would count as right for never speaking."""
    expected = {expect.rule for scenario in SCENARIOS for expect in scenario.expect}

    assert expected >= RULES - STATISTICAL
    assert expected <= RULES


def test_healthy_scenarios_expect_no_alarm() -> None:
    """They may expect information."""
    states = {expect.state for scenario in SCENARIOS if scenario.healthy for expect in scenario.expect}

    assert states <= {"ok", "underused"}


def test_scenarios_speak_of_quantities_and_states_that_exist() -> None:
    """A misspelt key would change nothing, and the scenario would test nothing."""
    known = set(BY_KEY)
    for scenario in SCENARIOS:
        named = {*scenario.set, *scenario.unset, *(key for values in scenario.per_gpu.values() for key in values)}
        named |= {key for change in scenario.change for key in (*change.set, *change.unset, *change.rates)}
        assert named <= known, scenario.name
        assert scenario.state in {*CARD_STATES, *NODE_STATES, *WORKLOAD_STATES}, scenario.name
        assert set(scenario.allow) <= RULES, scenario.name


def test_profiles_speak_of_quantities_that_exist() -> None:
    """The same for what scenarios start from."""
    profiles = load_profiles()

    assert {key for values in profiles.values() for key in values} <= set(BY_KEY)
    assert {scenario.profile for scenario in SCENARIOS} <= set(profiles)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[scenario]]\nname = 'a'", "missing required field"),
        ("[[scenario]]\nname = 'a'\nfamily = 'f'\nhealthy = true\nduration_s = 9\ntypo = 1", "unknown field"),
        ("nonsense", "Expected"),
    ],
)
def test_what_breaks_the_language_is_an_error_with_its_file(tmp_path: Path, text: str, says: str) -> None:
    """Nothing is skipped in silence."""
    (tmp_path / "x.toml").write_text(text)

    with pytest.raises(ValueError, match=r"x\.toml.*") as error:
        load_scenarios(tmp_path)
    assert says in str(error.value)


def test_a_name_is_used_once(tmp_path: Path) -> None:
    """Results are told apart by it."""
    one = "[[scenario]]\nname = 'a'\nfamily = 'f'\nhealthy = true\nduration_s = 9\n"
    (tmp_path / "x.toml").write_text(one + one)

    with pytest.raises(ValueError, match="used twice: a"):
        load_scenarios(tmp_path)
