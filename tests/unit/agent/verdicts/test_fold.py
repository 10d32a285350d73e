"""Tests of agent.verdicts.fold."""

import itertools

import pytest

from agent.model.verdict import Finding
from agent.model.vocabulary import CARD_STATES
from agent.verdicts.fold import card_state, cover, node_state, without, workload_state
from tests.support.views import card_of


def finding(rule: str, state: str, *, shadow: bool = False, since_wall_s: float = 10.0) -> Finding:
    """Return a finding."""
    return Finding(rule, state, "cause", "Summary.", "Act.", since_wall_s, shadow=shadow)


@pytest.mark.parametrize("pair", list(itertools.combinations(CARD_STATES, 2)))
def test_the_earlier_state_wins(pair: tuple[str, str]) -> None:
    """Precedence is the order of the vocabulary, whatever the order of findings."""
    first, second = (finding(state, state) for state in pair)

    assert card_state([first, second]) == card_state([second, first]) == pair[0]


def test_a_card_without_findings_is_ok() -> None:
    """So is one with information only."""
    assert card_state([]) == "ok"
    assert card_state([finding("power_cap", "ok")]) == "ok"


def test_shadows_move_no_state() -> None:
    """A rule in shadow is shown, not counted."""
    shadows = [finding("xid", "faulty", shadow=True), finding("input_bound", "input_bound", shadow=True)]

    assert card_state(shadows) == "ok"
    assert workload_state(shadows, card_of(0, {})) == "ok"
    assert node_state([finding("nvml_down", "nvml_down", shadow=True)]) == "ok"


def test_a_workload_state_is_no_card_state() -> None:
    """A starving card is a healthy card."""
    assert card_state([finding("input_bound", "input_bound")]) == "ok"


def test_a_workload_needs_a_process() -> None:
    """Without one there is none, whatever was said."""
    starving = [finding("input_bound", "input_bound")]

    assert workload_state(starving, card_of(0, {}, processes=0)) == "none"
    assert workload_state(starving, card_of(0, {})) == "input_bound"
    assert workload_state([finding("input_bound", "underused")], card_of(0, {})) == "underused"
    assert workload_state([], card_of(0, {})) == "ok"


def test_the_first_node_finding_names_the_state() -> None:
    """Node rules stand in order of precedence."""
    assert node_state([finding("a", "driver_hung"), finding("b", "gpu_missing")]) == "driver_hung"
    assert node_state([]) == "ok"


def test_a_node_wide_cause_stands_in_for_what_it_explains() -> None:
    """The card is then unknown, not healthy and not ill, since its own finding began."""
    node = finding("nvml_down", "nvml_down", since_wall_s=5)
    own = [finding("card_lost", "lost", since_wall_s=7), finding("xid", "ok")]

    covered = cover(own, [(node, ("card_lost", "no_telemetry"))])

    assert [(one.rule, one.state, one.since_wall_s) for one in covered] == [
        ("xid", "ok", 10),
        ("nvml_down", "unknown", 7),
    ]
    assert card_state(covered) == "unknown"


def test_what_is_not_explained_stays() -> None:
    """A faulty card stays faulty while the fabric is down."""
    own = [finding("ecc_uncorrected", "faulty")]

    assert cover(own, [(finding("fabric_down", "fabric_down"), ("nvlink",))]) == tuple(own)


def test_findings_of_named_rules_are_left_out() -> None:
    """The rest keeps its order."""
    findings = [finding("a", "ok"), finding("b", "ok"), finding("c", "ok")]

    assert [one.rule for one in without(findings, ["b"])] == ["a", "c"]
