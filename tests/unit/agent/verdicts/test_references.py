"""How a card's reference comes about, and what an upgrade may not do to it."""

import random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.config.settings import DegradedSettings
from agent.model.probe import ProbeRecord
from agent.model.reference import Reference
from agent.verdicts.references import clean_runs, new_references, renewed, slope_per_kelvin
from tests.support.histories import CV, GOOD, hourly
from tests.support.records import DAY_S, HOUR_S, START_S, record

LIMITS = DegradedSettings()
NOW_S = START_S + 30 * DAY_S
DRIVER = "610.10.1"


def learnt(records: list[ProbeRecord], references: tuple[Reference, ...] = ()) -> tuple[Reference, ...]:
    """Return ``references`` and the new ones."""
    return (*references, *new_references(records, references, LIMITS, NOW_S + len(references)))


def test_twenty_runs_over_a_day_make_a_reference_once() -> None:
    """Twenty-five hourly runs span 24 hours; what comes later changes nothing."""
    runs = hourly([0.0] * 24, seed=1)
    assert learnt(runs) == ()
    runs += hourly([0.0] * 40, start_s=START_S + 24 * HOUR_S, seed=2)
    (made,) = learnt(runs)
    assert (made.runs, made.first_wall_s, made.last_wall_s) == (25, START_S, START_S + 24 * HOUR_S)
    assert made.median == pytest.approx(GOOD, rel=2 * CV)
    assert 0 < made.mad < 2 * CV * GOOD
    assert learnt(runs, (made,)) == (made,)


def test_nineteen_runs_over_two_days_are_too_few() -> None:
    """Span alone does not make a reference."""
    runs = [record(START_S + number * 3 * HOUR_S) for number in range(19)]
    assert learnt(runs) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"judged": False},
        {"contended": True},
        {"trigger": "burnin"},
        {"trigger": "bench"},
        {"trigger": "suspicion"},
        {"trigger": "command"},
        {"status": "skipped", "reason": "busy"},
        {"status": "wrong_answer", "reason": "exact_mismatch"},
        {"temperature_celsius": 75.0},
    ],
)
def test_runs_that_are_not_clean_never_move_a_reference(changes: dict[str, object]) -> None:
    """Throttled, contended, hot, asked-for and failed runs are left out, however many and however slow."""
    runs = hourly([0.0] * 25, seed=3)
    (expected,) = learnt(runs)
    dirty = [record(run.wall_s + 60.0, 0.8 * GOOD, **changes) for run in runs]  # type: ignore[arg-type]
    (made,) = learnt([*dirty, *runs])
    assert made == expected
    if "temperature_celsius" not in changes:  # heat shows beside cooler runs only
        assert learnt(dirty) == ()


def test_runs_that_disagree_make_no_reference_until_some_agree() -> None:
    """A card whose runs scatter by tens of per cent is not given a figure to be held to."""
    wild = hourly([0.3 * (-1) ** hour for hour in range(40)])
    assert learnt(wild) == ()
    (made,) = learnt([*wild, *hourly([0.0] * 30, start_s=START_S + 40 * HOUR_S, seed=4)])
    assert made.median == pytest.approx(GOOD, rel=0.01)


def test_outliers_do_not_move_a_reference() -> None:
    """Two runs of minus 6 per cent among twenty-five leave the median where it is."""
    runs = hourly([-0.06 if hour in (3, 11) else 0.0 for hour in range(25)], seed=5)
    (made,) = learnt(runs)
    assert made.median == pytest.approx(GOOD, rel=0.002)


@given(st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_the_order_in_which_records_come_does_not_matter(shuffler: random.Random) -> None:
    """History read back in another order makes the same reference."""
    runs = hourly([0.0] * 30, seed=6)
    expected = learnt(runs)
    shuffled = list(runs)
    shuffler.shuffle(shuffled)
    assert learnt(shuffled) == expected


def test_the_slope_over_temperature_is_found_despite_outliers() -> None:
    """0.1 per cent a kelvin is seen through noise and an outlier."""
    noise = random.Random(7)
    runs = [
        record(
            START_S + hour * HOUR_S,
            GOOD * (1.0 - 0.001 * celsius + noise.gauss(0, CV) - 0.06 * (hour == 5)),
            temperature_celsius=45.0 + celsius,
        )
        for hour, celsius in enumerate(8 * (hour % 5) / 4 for hour in range(25))
    ]
    assert slope_per_kelvin(runs, GOOD) == pytest.approx(-0.001, abs=0.0004)
    assert slope_per_kelvin(hourly([0.0] * 25, seed=1), GOOD) == 0.0


def test_a_renewal_takes_the_latest_clean_runs_and_needs_five() -> None:
    """An operator's word makes a reference at once, of what the card does now."""
    runs = hourly([0.0] * 25 + [-0.05] * 20)
    made = renewed(runs, LIMITS, NOW_S)
    assert made is not None
    assert (made.origin, made.runs) == ("renewed", 20)
    assert made.median == pytest.approx(0.95 * GOOD)
    assert renewed(runs[:4], LIMITS, NOW_S) is None
    assert renewed([], LIMITS, NOW_S) is None


def after_upgrade(deviation: float, uuid: str = "GPU-a", *, hours: int = 30, start_h: int = 40) -> list[ProbeRecord]:
    """Return runs under another driver."""
    return hourly(
        [deviation] * hours, uuid=uuid, start_s=START_S + start_h * HOUR_S, seed=hash(uuid) % 97, driver=DRIVER
    )


def test_a_reference_after_an_upgrade_counts_where_it_fits_the_old_one() -> None:
    """Within 1.5 per cent of the one before, the new one takes over."""
    old = hourly([0.0] * 40, seed=8)
    references = learnt([*old, *after_upgrade(-0.005)], learnt(old))
    assert [one.disputed for one in references] == [False, False]
    assert references[1].driver == DRIVER


@pytest.mark.parametrize("deviation", [-0.03, 0.03])
def test_a_reference_after_an_upgrade_is_disputed_where_it_does_not_fit(deviation: float) -> None:
    """On a lone card nothing tells the upgrade's effect from the card's, in either direction."""
    old = hourly([0.0] * 40, seed=8)
    references = learnt([*old, *after_upgrade(deviation)], learnt(old))
    assert [(one.disputed, one.degraded_before) for one in references] == [(False, False), (True, False)]


def test_the_nodes_shift_explains_what_an_upgrade_did_to_all() -> None:
    """Four cards that all gained 4 per cent keep their good name; one that gained 1 does not."""
    uuids = ("GPU-a", "GPU-b", "GPU-c", "GPU-d")
    old = [run for uuid in uuids for run in hourly([0.0] * 40, uuid=uuid, seed=hash(uuid) % 89)]
    references = learnt(old)
    new = [run for uuid in uuids for run in after_upgrade(0.01 if uuid == "GPU-d" else 0.04, uuid)]
    made = learnt([*old, *new], references)[4:]
    assert {one.uuid: one.disputed for one in made} == {
        "GPU-a": False,
        "GPU-b": False,
        "GPU-c": False,
        "GPU-d": True,
    }


def test_an_upgrade_never_launders_a_slow_card() -> None:
    """A card 5 per cent slow whose new driver wins 5 per cent looks as of old: still disputed, still slow."""
    old = hourly([0.0] * 30 + [-0.05] * 10, seed=9)
    references = learnt([*old, *after_upgrade(0.0)], learnt(old[:30]))
    assert (references[1].disputed, references[1].degraded_before) == (True, True)


def test_a_second_upgrade_does_not_launder_it_either() -> None:
    """The mark passes from a disputed reference to the next, also when the old runs are gone from memory."""
    old = hourly([0.0] * 30 + [-0.05] * 10, seed=9)
    references = learnt([*old, *after_upgrade(0.0)], learnt(old[:30]))
    third = hourly([0.0] * 30, start_s=START_S + 80 * HOUR_S, seed=10, driver="620.1")
    made = learnt(third, references)[2]
    assert (made.driver, made.disputed, made.degraded_before) == ("620.1", True, True)


def test_a_slow_card_that_the_node_proves_well_is_cleared() -> None:
    """Where the other cards show that the upgrade changed nothing, a card back at its old figure was cured."""
    uuids = ("GPU-a", "GPU-b", "GPU-c")
    good = [run for uuid in uuids for run in hourly([0.0] * 30, uuid=uuid, seed=hash(uuid) % 89)]
    references = learnt(good)
    slow = hourly([-0.05] * 10, start_s=START_S + 30 * HOUR_S, seed=3)
    new = [run for uuid in uuids for run in after_upgrade(0.0, uuid)]
    made = learnt([*good, *slow, *new], references)[3:]
    assert [one.disputed for one in made] == [False, False, False]


def test_another_method_or_shape_asks_only_whether_the_card_was_well() -> None:
    """Figures of another method cannot be compared; a lone card that was not slow starts anew."""
    old = hourly([0.0] * 40, seed=8)
    other = hourly([0.5] * 30, start_s=START_S + 40 * HOUR_S, seed=2, method_version=2)
    assert not learnt([*old, *other], learnt(old))[1].disputed
    was_slow = hourly([0.0] * 30 + [-0.05] * 10, seed=9)
    made = learnt([*was_slow, *other], learnt(was_slow[:30]))[1]
    assert (made.disputed, made.degraded_before) == (True, True)


def test_no_reference_is_made_under_a_lowered_power_limit() -> None:
    """What the limit takes shows against the reference under the full one, until an operator renews."""
    old = hourly([0.0] * 30, seed=8)
    lowered = hourly([-0.1] * 30, start_s=START_S + 30 * HOUR_S, seed=2, power_limit_watts=500.0)
    references = learnt(old)
    assert learnt([*old, *lowered], references) == references


def test_runs_without_a_temperature_are_not_left_out() -> None:
    """A card that does not tell its temperature earns its reference all the same."""
    runs = hourly([0.0] * 25, seed=1, temperature_celsius=None)
    assert clean_runs(runs) == runs
    assert learnt(runs)[0].temperature_median_celsius is None


def test_a_replaced_card_starts_without_what_the_old_one_left() -> None:
    """References belong to a UUID: another card in the same slot has none of them."""
    old = hourly([0.0] * 30 + [-0.05] * 10, seed=9)
    references = learnt(old[:30])
    new = hourly([0.0] * 25, uuid="GPU-new", start_s=START_S + 50 * HOUR_S, seed=1)
    made = learnt([*old, *new], references)[1]
    assert (made.uuid, made.disputed) == ("GPU-new", False)
    assert msgspec.structs.replace(made, uuid="GPU-a") != references[0]
