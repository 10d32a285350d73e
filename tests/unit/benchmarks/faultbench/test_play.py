"""The fault bench itself, on one seed a scenario: what it must show is shown by every test run."""

import pytest

from agent.config.settings import VerdictSettings
from benchmarks.faultbench.play import play
from benchmarks.faultbench.scenario import Scenario, load_profiles, load_scenarios
from benchmarks.faultbench.score import score

PROFILES = load_profiles()
QUICK = [scenario for scenario in load_scenarios() if scenario.family not in ("probes", "degraded")]
SEED = 1


@pytest.mark.parametrize("scenario", QUICK, ids=lambda scenario: scenario.name)
def test_every_fault_is_found_and_nothing_else_is_said(scenario: Scenario) -> None:
    """Recall and precision of 1 on this seed, and no rule raises."""
    total = score([(scenario, play(scenario, PROFILES, SEED, VerdictSettings()))])

    assert not total.missed
    assert not total.false_alarms
    assert total.rule_errors == 0


def test_a_seed_gives_the_same_run_again() -> None:
    """A failure can be looked at."""
    scenario = next(one for one in QUICK if one.name == "power brake now and then")
    first, again, other = (play(scenario, PROFILES, seed, VerdictSettings()) for seed in (3, 3, 4))

    assert first.said == again.said
    assert first.said != other.said
