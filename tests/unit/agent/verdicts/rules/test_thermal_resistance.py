"""Tests of agent.verdicts.rules.thermal_resistance."""

from collections.abc import Mapping

import msgspec
import pytest

from agent.verdicts import keys
from agent.verdicts.rules import thermal_resistance
from agent.verdicts.view import EMPTY_WINDOW, CardView, ResistanceSample, Window
from tests.support.views import THRESHOLDS, steady, view_of

IDLE = {keys.UTILIZATION: 0.0, keys.POWER: 78.0, keys.TEMPERATURE: 34.0}
LOAD = {keys.UTILIZATION: 1.0, keys.POWER: 690.0, keys.TEMPERATURE: 66.0}


def loaded(*rows: Mapping[str, float]) -> CardView:
    """Return the view after three idle minutes and ``rows``."""
    return view_of([*steady(IDLE, 190), *rows])


def measured(view: CardView) -> ResistanceSample | None:
    """Return what the view's load shows."""
    return thermal_resistance.measure(view.recent, view.minutes, 1000.0)


def test_a_steady_load_after_an_idle_time_shows_kelvin_per_watt() -> None:
    """From the idle point to the load point."""
    sample = measured(loaded(*steady(LOAD, 40)))

    assert sample is not None
    assert sample.kelvin_per_watt == pytest.approx((66 - 34) / (690 - 78))
    assert sample.power_watts == pytest.approx(690)


def test_room_temperature_cancels_out() -> None:
    """Ten degrees more in the room, the same resistance."""
    warm_idle, warm_load = IDLE | {keys.TEMPERATURE: 44.0}, LOAD | {keys.TEMPERATURE: 76.0}
    view = view_of([*steady(warm_idle, 190), *steady(warm_load, 40)])
    sample = measured(view)

    assert sample is not None
    assert sample.kelvin_per_watt == pytest.approx((66 - 34) / (690 - 78))


@pytest.mark.parametrize(
    "rows",
    [
        [*steady(LOAD, 10)],
        [LOAD | {keys.POWER: 500.0 + 10 * n} for n in range(40)],
        [LOAD | {keys.TEMPERATURE: 40.0 + n} for n in range(40)],
        [*steady(LOAD | {keys.POWER: 120.0}, 40)],
    ],
    ids=["too short", "power moves", "still heating", "hardly a load"],
)
def test_an_unsteady_or_small_load_shows_nothing(rows: list[Mapping[str, float]]) -> None:
    """Only settled points count."""
    assert measured(loaded(*rows)) is None


def test_without_an_idle_time_nothing_is_shown() -> None:
    """A card that was never idle has no idle point."""
    assert measured(view_of(steady(LOAD, 300))) is None
    assert thermal_resistance.idle_point(EMPTY_WINDOW) is None


def test_the_latest_settled_idle_minute_counts() -> None:
    """While the card cools down after a load it is not settled."""
    rows = {
        keys.UTILIZATION: [0.0, 0.0, 1.0, 0.0, 0.0],
        keys.POWER: [78.0, 78.0, 690.0, 90.0, 80.0],
        keys.TEMPERATURE: [34.0, 34.2, 66.0, 50.0, 40.0],
    }

    assert thermal_resistance.idle_point(Window(60.0, [60.0 * n for n in range(5)], rows)) == (78.0, 34.2)


def history(*values: float, watts: float = 640.0) -> CardView:
    """Return a view with these samples."""
    samples = tuple(ResistanceSample(float(n), value, watts) for n, value in enumerate(values))
    return msgspec.structs.replace(loaded(), resistances=samples)


USUAL = (0.050, 0.051, 0.049, 0.050, 0.052, 0.050, 0.049, 0.051, 0.050, 0.050)


def test_a_third_more_degrees_a_watt_are_said() -> None:
    """Information, and a reason to probe."""
    conclusion = thermal_resistance.judge(history(*USUAL, 0.066, 0.068, 0.067), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause, conclusion.suspect) == ("ok", "rising", True)
    assert conclusion.evidence["usual_kelvin_per_watt"] == pytest.approx(0.05)


@pytest.mark.parametrize(
    "latest", [(0.051, 0.050, 0.052), (0.050, 0.067, 0.050), (0.040, 0.041, 0.040), (0.055, 0.054, 0.055)]
)
def test_the_usual_one_outlier_better_and_a_little_worse_are_not(latest: tuple[float, ...]) -> None:
    """The median of three loads must lie a fifth above."""
    assert thermal_resistance.judge(history(*USUAL, *latest), THRESHOLDS) is None


def test_a_short_history_compares_with_nothing() -> None:
    """Thirteen loads are the least."""
    assert thermal_resistance.judge(history(*USUAL, 0.08, 0.08), THRESHOLDS) is None


def test_loads_of_another_power_are_not_compared() -> None:
    """Fans answer to load."""
    view = history(*USUAL, 0.08, 0.08, 0.08)
    lighter = (
        tuple(msgspec.structs.replace(s, power_watts=300.0) for s in view.resistances[:10]) + view.resistances[10:]
    )

    assert thermal_resistance.judge(msgspec.structs.replace(view, resistances=lighter), THRESHOLDS) is None
