"""A small slowdown that lasts."""

import math
import random

import pytest

from agent.config.settings import VerdictSettings
from agent.model.probe import ProbeRecord
from agent.verdicts.rules.slow_drift import judge
from agent.verdicts.view import CardView
from tests.support.histories import GOOD, card_view, hourly, node
from tests.support.records import HOUR_S, START_S, record, reference

SETTINGS = VerdictSettings()


def state(view: CardView) -> str:
    """Return the state that the rule names; empty where it says nothing."""
    found = judge(view, SETTINGS)
    return found.state if found else ""


def swing(hour: int) -> float:
    """Return a daily swing of 1 per cent."""
    return 0.01 * math.sin(hour * math.tau / 24)


def test_three_per_cent_for_half_a_day_is_degraded() -> None:
    """Too little for the level, enough for the sum."""
    found = judge(card_view(hourly([0.0] * 20 + [-0.031] * 10, seed=1)), SETTINGS)
    assert found is not None
    assert (found.state, found.cause) == ("degraded", "unexplained")
    assert found.evidence["mean_deviation_ratio"] == pytest.approx(-0.031, abs=0.002)
    assert found.evidence["score_ratio"] >= found.evidence["threshold_ratio"]


def test_a_card_that_the_level_condemns_is_not_named_twice() -> None:
    """One fault, one finding."""
    assert state(card_view(hourly([0.0] * 20 + [-0.08] * 20))) == ""


def test_nothing_is_said_without_a_reference() -> None:
    """A stale reference is not used."""
    assert state(card_view(hourly([-0.031] * 30, driver="610.10.1"))) == ""
    assert state(card_view([])) == ""


@pytest.mark.parametrize("seed", range(5))
def test_what_the_temperature_explains_is_taken_out(seed: int) -> None:
    """A warm week costs 2 per cent and is no fault; the same loss at the usual temperature is."""
    rng = random.Random(seed)
    known = reference(slope_per_kelvin=-0.002, temperature_min_celsius=35.0, temperature_max_celsius=55.0)

    def run(hour: int, deviation: float, celsius: float) -> ProbeRecord:
        return record(
            START_S + hour * HOUR_S, GOOD * (1 + deviation + rng.gauss(0, 0.0024)), temperature_celsius=celsius
        )

    warm = [run(hour, -0.02, 55.0) for hour in range(60)]
    usual = [run(hour, -0.02, 45.0) for hour in range(60)]
    assert state(card_view(warm, (known,))) == ""
    assert state(card_view(usual, (known,))) == "degraded"


def test_what_all_cards_of_the_node_do_is_taken_out() -> None:
    """Four cards that swing by 1 per cent together are healthy; one 2.5 per cent below that is not."""
    days = [swing(hour) for hour in range(72)]
    cards = [hourly(days, uuid=f"GPU-{n}", seed=n) for n in range(4)]
    assert [state(view) for view in node(*cards)] == [""] * 4
    slow = hourly([day - 0.025 * (hour > 40) for hour, day in enumerate(days)], uuid="GPU-s", seed=9)
    assert [state(view) for view in node(slow, *cards)] == ["degraded", "", "", "", ""]


def test_two_cards_that_drift_together_are_not_blamed() -> None:
    """In a node too small to tell, half of it drifting on the same day is the host's doing."""
    both = [hourly([0.0] * 20 + [-0.031] * 10, uuid=f"GPU-{n}", seed=n) for n in range(2)]
    assert [state(view) for view in node(*both)] == ["", ""]
    alone = [both[0], hourly([0.0] * 30, uuid="GPU-1", seed=1)]
    assert [state(view) for view in node(*alone)] == ["degraded", ""]


def test_a_card_below_its_peers_since_delivery_is_healthy() -> None:
    """Its own reference says 3 per cent less, and it keeps to it."""
    slower = hourly([-0.03] * 80, seed=3)
    assert state(card_view(slower, (reference(median=0.97 * GOOD),))) == ""
