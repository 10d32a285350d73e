"""Tests of agent.verdicts.rules.ecc_corrected."""

import pytest

from agent.verdicts.rules import ecc_corrected
from agent.verdicts.view import CardView
from tests.support.views import THRESHOLDS, view_of

KEY = "ecc_errors_corrected_volatile"


def with_rate(per_hour: float, index: int = 0, minutes: int = 20, held: bool = False, **more: object) -> CardView:
    """Return a card that corrects so many errors an hour."""
    rows = [{KEY: 1000 + per_hour * n / 360} for n in range(6 * minutes)]
    names = frozenset({ecc_corrected.NAME} if held else ())
    return view_of(rows, step_s=10.0, index=index, held=names, **more)  # type: ignore[arg-type]


def test_the_rate_is_per_hour_of_what_is_known() -> None:
    """Nothing is said below ten minutes."""
    assert ecc_corrected.hourly_rate(with_rate(360).minutes) == pytest.approx(360, rel=0.1)
    assert ecc_corrected.hourly_rate(with_rate(360, minutes=9).minutes) is None


@pytest.mark.parametrize(
    ("mine", "peers", "found"),
    [
        (400, (2, 3, 1), True),
        (400, (), True),
        (400, (300, 350, 20), False),
        (50, (0, 0, 0), False),
        (0, (0, 0), False),
    ],
)
def test_an_outlier_has_many_and_many_times_its_peers(mine: float, peers: tuple[float, ...], found: bool) -> None:
    """A hot room corrects on every card alike; a few errors are nothing."""
    views = tuple(with_rate(rate, 1 + n) for n, rate in enumerate(peers))
    conclusion = ecc_corrected.judge(with_rate(mine, peers=views), THRESHOLDS)

    assert (conclusion is not None) is found
    if conclusion is not None:
        assert (conclusion.state, conclusion.cause, conclusion.suspect) == ("ok", "outlier", True)


def test_what_is_an_outlier_stays_one_until_half() -> None:
    """No flapping at the threshold."""
    assert ecc_corrected.judge(with_rate(80, minutes=60), THRESHOLDS) is None
    assert ecc_corrected.judge(with_rate(80, minutes=60, held=True), THRESHOLDS) is not None
    assert ecc_corrected.judge(with_rate(40, minutes=90, held=True), THRESHOLDS) is None


def test_a_handful_of_errors_is_no_rate() -> None:
    """Twenty in ten minutes may be chance."""
    assert ecc_corrected.judge(with_rate(150, minutes=12), THRESHOLDS) is None
    assert ecc_corrected.judge(with_rate(150, minutes=30), THRESHOLDS) is not None
