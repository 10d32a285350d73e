"""Tests of agent.verdicts.thermal_memory."""

import pytest

from agent.verdicts import keys
from agent.verdicts.rules.thermal_resistance import BASELINE
from agent.verdicts.thermal_memory import APART_S, KEPT, ThermalMemory
from agent.verdicts.view import CardView
from tests.support.views import MemoryDocuments, steady, view_of

IDLE = {keys.UTILIZATION: 0.0, keys.POWER: 78.0, keys.TEMPERATURE: 34.0}


def loaded(celsius: float = 66.0) -> CardView:
    """Return a card under a steady load after an idle time."""
    load = {keys.UTILIZATION: 1.0, keys.POWER: 690.0, keys.TEMPERATURE: celsius}
    return view_of([*steady(IDLE, 190), *steady(load, 40)])


def test_a_load_is_measured_and_kept_over_a_restart() -> None:
    """Months lie between the first load and the one that shows a change."""
    documents = MemoryDocuments()
    view = loaded()
    ThermalMemory(documents).watch("GPU-a", view.recent, view.minutes, 1000.0)

    (sample,) = ThermalMemory(documents).of("GPU-a")
    assert sample.kelvin_per_watt == pytest.approx(32 / 612)


def test_one_long_load_is_one_sample() -> None:
    """The next one counts half an hour later."""
    memory, view = ThermalMemory(MemoryDocuments()), loaded()
    for wall_s in (0, 60, APART_S - 1, APART_S):
        memory.watch("GPU-a", view.recent, view.minutes, wall_s)

    assert [sample.wall_s for sample in memory.of("GPU-a")] == [0, APART_S]


def test_the_first_samples_and_the_latest_are_kept() -> None:
    """A year of loads leaves what they are compared with."""
    memory, view = ThermalMemory(MemoryDocuments()), loaded()
    for n in range(100):
        memory.watch("GPU-a", view.recent, view.minutes, n * APART_S)

    times = [sample.wall_s / APART_S for sample in memory.of("GPU-a")]
    assert times == [*range(BASELINE), *range(100 - KEPT + BASELINE, 100)]


def test_no_load_no_sample_and_no_write() -> None:
    """An idle card is not measured."""
    documents = MemoryDocuments()
    view = view_of(steady(IDLE, 200))
    ThermalMemory(documents).watch("GPU-a", view.recent, view.minutes, 0.0)

    assert documents.saves == 0


@pytest.mark.parametrize("data", [b"", b"[]", b'{"GPU-a": 5}', b"\xff"])
def test_a_document_that_is_not_ours_counts_as_none(data: bytes) -> None:
    """A damaged document never stops a start."""
    documents = MemoryDocuments()
    documents.documents["thermal_resistance"] = data

    assert ThermalMemory(documents).of("GPU-a") == ()
