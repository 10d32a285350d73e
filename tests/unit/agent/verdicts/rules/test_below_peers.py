"""Cards compared with the others of their model in the node."""

import msgspec
import pytest

from agent.config.settings import VerdictSettings
from agent.verdicts.rules.below_peers import judge
from agent.verdicts.view import CardView
from tests.support.histories import GOOD, hourly, node
from tests.support.records import DAY_S, START_S

SETTINGS = VerdictSettings()
ONE_SHOT = msgspec.structs.replace(
    SETTINGS, degraded=msgspec.structs.replace(SETTINGS.degraded, confirm_measurements=1, confirm_runs=1)
)


def states(views: list[CardView], settings: VerdictSettings = SETTINGS) -> list[str]:
    """Return the state named for each card; empty where nothing is said."""
    return [found.state if (found := judge(view, settings)) else "" for view in views]


@pytest.mark.parametrize(("settings", "runs"), [(SETTINGS, 5), (ONE_SHOT, 1)])
def test_one_card_at_a_third_among_four_is_flagged_and_no_other(settings: VerdictSettings, runs: int) -> None:
    """19.2, 19.1, 6.7 and 19.2 flag exactly the third, without any reference."""
    figures = (19.2, 19.1, 6.7, 19.2)
    cards = [hourly([figure / 19.2 - 1.0] * runs, uuid=f"GPU-{n}") for n, figure in enumerate(figures)]
    views = [msgspec.structs.replace(view, references=()) for view in node(*cards)]
    assert states(views, settings) == ["", "", "degraded", ""]


@pytest.mark.parametrize(("deviation", "expected"), [(-0.03, ""), (-0.06, "ok"), (-0.15, "ok"), (-0.21, "degraded")])
def test_below_its_peers_is_information_until_beyond_the_spread(deviation: float, expected: str) -> None:
    """While the spread of good cards is unknown it takes four times 5 per cent to condemn."""
    cards = [hourly([deviation] * 5), *[hourly([0.0] * 5, uuid=f"GPU-{n}", seed=n) for n in range(7)]]
    assert states(node(*cards)) == [expected, *[""] * 7]


def test_one_good_run_of_the_last_acquits() -> None:
    """The best of the last runs counts."""
    assert states(node(hourly([-0.3] * 4 + [0.0]), hourly([0.0] * 5, uuid="GPU-b"))) == ["", ""]


def test_too_few_runs_and_no_peer_say_nothing() -> None:
    """Before there is enough to compare, nothing is said."""
    assert states(node(hourly([-0.3] * 4), hourly([0.0] * 5, uuid="GPU-b"))) == ["", ""]
    assert states(node(hourly([-0.3] * 5))) == [""]


def test_peers_under_other_software_or_of_another_day_are_not_compared_with() -> None:
    """Figures that were made otherwise say nothing about a card."""
    slow = hourly([-0.3] * 5)
    assert states(node(slow, hourly([0.0] * 5, uuid="GPU-b", driver="1")))[0] == ""
    assert states(node(slow, hourly([0.0] * 5, uuid="GPU-b", shape="1x1x1")))[0] == ""
    assert states(node(slow, hourly([0.0] * 5, uuid="GPU-b", start_s=START_S + 3 * DAY_S)))[0] == ""
    assert GOOD > 0
