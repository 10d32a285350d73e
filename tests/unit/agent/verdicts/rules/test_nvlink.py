"""Tests of agent.verdicts.rules.nvlink."""

import pytest

from agent.verdicts.rules import nvlink
from agent.verdicts.view import CardView
from tests.support.snapshots import busy_values
from tests.support.views import THRESHOLDS, steady, view_of


def links(active: float, index: int = 0, **more: object) -> CardView:
    """Return a card with so many links up."""
    return view_of(steady(busy_values(nvlink_active_links=active)), index=index, **more)  # type: ignore[arg-type]


def errors(per_hour: float, key: str = "nvlink_errors_crc", held: bool = False) -> CardView:
    """Return a card with so many link errors an hour, watched for an hour."""
    rows = [busy_values(**{key: per_hour * n / 360}) for n in range(370)]
    return view_of(rows, step_s=10.0, held=frozenset({nvlink.NAME} if held else ()))


def test_fewer_links_than_the_peers_are_a_fault() -> None:
    """Most of the peers tell how many there should be."""
    peers = tuple(links(18, n) for n in (1, 2, 3))
    conclusion = nvlink.judge(links(16, peers=peers), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("degraded", "links_down")


@pytest.mark.parametrize("peers", [(18, 18), (), (16, 16, 18), (0, 0)])
def test_as_many_links_as_most_are_fine(peers: tuple[int, ...]) -> None:
    """So is a card alone, and boards without links."""
    views = tuple(links(active, 1 + n) for n, active in enumerate(peers))
    mine = 0 if 0 in peers else 18

    assert nvlink.judge(links(mine, peers=views), THRESHOLDS) is None


@pytest.mark.parametrize("key", ["nvlink_errors_crc", "nvlink_errors_replay", "nvlink_errors_recovery"])
def test_many_link_errors_an_hour_are_a_fault(key: str) -> None:
    """Whatever their kind."""
    conclusion = nvlink.judge(errors(60, key), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("degraded", "errors")


def test_a_rare_error_is_fine_and_the_threshold_does_not_flap() -> None:
    """Links replay now and then."""
    assert nvlink.judge(errors(4), THRESHOLDS) is None
    assert nvlink.judge(errors(8), THRESHOLDS) is None
    assert nvlink.judge(errors(8, held=True), THRESHOLDS) is not None
    assert nvlink.judge(view_of(steady({"power_watts": 1.0})), THRESHOLDS) is None
