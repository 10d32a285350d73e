"""Why a card is slow, by the probe's own evidence."""

import msgspec
import pytest

from agent.model.probe import Attribution
from agent.model.snapshot import Card, CardIdentity
from agent.verdicts.causes import ACTIONS, WORDS, cause_of, evidence_of
from agent.verdicts.measurements import Measurement
from tests.support.records import START_S, record, reference

CARD = Card(
    CardIdentity(0, "GPU-a"),
    {"power_limit_default_watts": 700.0, "pcie_width_max_lanes": 16.0, "pcie_generation_max": 5.0},
)
AS_BEFORE = Attribution(
    samples=30,
    sm_clock_median_hertz=1.6e9,
    memory_clock_median_hertz=3.2e9,
    temperature_max_celsius=46.0,
    power_limit_watts=700.0,
    pcie_generation_max=5.0,
    pcie_width_max=16.0,
)


def measured(did: Attribution | None) -> Measurement:
    """Return a slow measurement during which the card did ``did``."""
    slow = msgspec.structs.replace(record(START_S, 600e12), attribution=did)
    return Measurement(slow, reference(memory_clock_median_hertz=3.2e9), -0.09, -0.09)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "unexplained"),
        ({"power_limit_watts": 600.0}, "power_limit_below_default"),
        ({"sm_clock_median_hertz": 1.4e9, "throttle_share": {"applications_clocks": 1.0}}, "clocks_limited"),
        ({"sm_clock_median_hertz": 1.4e9}, "unexplained"),
        ({"throttle_share": {"applications_clocks": 1.0}}, "unexplained"),
        ({"memory_clock_median_hertz": 2.6e9}, "clocks_limited"),
        ({"sm_clock_median_hertz": 1.4e9, "temperature_max_celsius": 60.0}, "thermal"),
        ({"temperature_max_celsius": 60.0}, "unexplained"),
        ({"pcie_width_max": 8.0}, "pcie"),
        ({"pcie_generation_max": 1.0}, "pcie"),
        ({"host_cpu_share": 0.97}, "host_contention"),
        (
            {"power_limit_watts": 600.0, "sm_clock_median_hertz": 1.2e9, "pcie_width_max": 8.0},
            "power_limit_below_default",
        ),
    ],
)
def test_the_most_certain_explanation_is_named(changes: dict[str, object], expected: str) -> None:
    """Each cause by its own evidence, and none where the evidence is missing."""
    did = msgspec.structs.replace(AS_BEFORE, **changes)
    assert cause_of(measured(did), CARD) == expected


def test_what_was_not_read_explains_nothing() -> None:
    """Unknown is not evidence."""
    assert cause_of(measured(None), CARD) == "unexplained"
    assert cause_of(measured(Attribution()), Card(CardIdentity(0, "GPU-a"))) == "unexplained"
    assert "sm_clock_hertz" not in evidence_of(measured(None))


def test_every_cause_has_words_and_an_action() -> None:
    """A cause without a next action helps nobody."""
    assert WORDS.keys() == ACTIONS.keys()
