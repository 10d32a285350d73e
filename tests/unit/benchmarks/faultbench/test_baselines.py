"""Tests of benchmarks.faultbench.baselines."""

import pytest

from agent.model.snapshot import NvmlHealth, Snapshot
from benchmarks.faultbench.baselines import Scrape, exporter_alerts, score_alerts
from tests.support.records import record
from tests.support.snapshots import busy_values, h200_values
from tests.support.views import card_of


def scrapes(seconds: int, values: dict[str, float], *, up: bool = True) -> list[Scrape]:
    """Return a scrape each 15 s of a card at work that reads so."""
    card = card_of(0, busy_values(**{"throttle_active_sw_power_cap": 0.0, **values}))
    return [
        (float(at_s), Snapshot(float(at_s), float(at_s), cards=(card,), nvml=NvmlHealth(up=up)))
        for at_s in range(0, seconds, 15)
    ]


@pytest.mark.parametrize(
    ("values", "seconds", "fired"),
    [
        ({}, 3600, False),
        ({"temperature_celsius": 86.0}, 200, False),
        ({"temperature_celsius": 86.0}, 400, True),
        ({"xid_last_code": 13.0}, 30, True),
        ({"ecc_errors_uncorrected_volatile": 1.0}, 30, True),
        ({"utilization_ratio": 0.1}, 900, False),
        ({"utilization_ratio": 0.1}, 2000, True),
        ({"pcie_generation": 1.0}, 700, True),
    ],
)
def test_alerts_fire_once_their_condition_held_long_enough(values: dict[str, float], seconds: int, fired: bool) -> None:
    """As an alert rule with a `for` does."""
    assert bool(list(exporter_alerts(scrapes(seconds, values), 1))) is fired


def test_full_load_fires_the_usual_alert_on_throttle_reasons() -> None:
    """The known trap: a card at its power cap is how a loaded card runs."""
    card = card_of(0, busy_values(throttle_active_sw_power_cap=1.0))
    held = [(15.0 * n, Snapshot(15.0 * n, 0.0, cards=(card,), nvml=NvmlHealth(up=True))) for n in range(60)]

    assert list(exporter_alerts(held, 1))


def test_an_idle_card_fires_nothing() -> None:
    """Idle is the one reason that everybody leaves out."""
    card = card_of(0, h200_values(), processes=0)
    held = [(15.0 * n, Snapshot(15.0 * n, 0.0, cards=(card,), nvml=NvmlHealth(up=True))) for n in range(240)]

    assert not list(exporter_alerts(held, 1))


def test_a_driver_that_is_down_fires_for_the_node() -> None:
    """After two minutes."""
    assert list(exporter_alerts(scrapes(100, {}, up=False), 1)) == []
    assert list(exporter_alerts(scrapes(200, {}, up=False), 1)) == [(120.0, "node")]


def test_the_z_score_knows_only_the_last_twenty_values() -> None:
    """A step is seen once, and soon it is the new normal."""
    values = [660e12 * (1 + 0.002 * (n % 3 - 1)) for n in range(30)]
    steady = [record(float(n), value) for n, value in enumerate(values)]
    slower = [record(30.0 + n, 0.95 * value) for n, value in enumerate(values)]

    assert not list(score_alerts(steady))
    alerts = list(score_alerts([*steady, *slower]))
    assert alerts[0] == (30.0, "0")
    assert max(at_s for at_s, _ in alerts) < 40
