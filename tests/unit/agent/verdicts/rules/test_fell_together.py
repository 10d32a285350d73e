"""Cards that got slow together."""

from agent.config.settings import VerdictSettings
from agent.verdicts.rules import degraded
from agent.verdicts.rules.fell_together import judge
from tests.support.histories import card_view, confirmed, hourly, node

SETTINGS = VerdictSettings()


def test_cards_slow_together_are_unknown_and_probed_until_decided() -> None:
    """Nothing is proven against any of them, nor for it."""
    both = [confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.05) for n in range(2)]
    found = [judge(view, SETTINGS) for view in node(*both)]
    assert [(one.state, one.cause, one.suspect) for one in found if one] == [("unknown", "level", False)] * 2
    early = [judge(view, SETTINGS) for view in node(*[history[:8] for history in both])]
    assert [(one.state, one.cause, one.suspect) for one in early if one] == [("unknown", "level", True)] * 2


def test_outliers_of_two_cards_in_one_hour_are_no_fall() -> None:
    """One slow measurement each: both are suspected, probed again, and nothing is said of them meanwhile."""
    first = node(*[confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.06)[:6] for n in range(2)])
    assert [judge(view, SETTINGS) for view in first] == [None, None]
    suspected = [degraded.judge(view, SETTINGS) for view in first]
    assert [(one.state, one.cause, one.suspect) for one in suspected if one] == [("ok", "suspected", True)] * 2


def test_a_card_slow_alone_is_left_to_the_other_rules() -> None:
    """A lone card and one among good ones did not fall together with any."""
    slow = confirmed(hourly([0.0] * 5), -0.05)
    assert judge(card_view(slow), SETTINGS) is None
    assert judge(node(slow, hourly([0.0] * 7, uuid="GPU-b"))[0], SETTINGS) is None


def test_cards_that_drift_together_are_unknown() -> None:
    """A small loss of half the node is the host's as well."""
    four = [hourly([0.0] * 20 + [-0.031] * 14, uuid=f"GPU-{n}", seed=n) for n in range(4)]
    found = [judge(view, SETTINGS) for view in node(*four)]
    assert [(one.state, one.cause) for one in found if one] == [("unknown", "drift")] * 4


def test_recovered_cards_are_let_go() -> None:
    """Three good runs later nothing is said any more."""
    both = [confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.05) for n in range(2)]
    well = [[*one, *hourly([0.0] * 3, uuid=one[0].uuid, start_s=one[-1].wall_s + 3600.0)] for one in both]
    assert [judge(view, SETTINGS) for view in node(*well)] == [None, None]


def test_nobody_is_blamed_while_cards_recover_one_after_the_other() -> None:
    """The first to be measured well again does not accuse those whose turn is later."""
    slow = [confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.06) for n in range(4)]
    for well in range(1, 5):
        histories = [
            [*history, *hourly([0.0] * (3 if n < well else 1), uuid=f"GPU-{n}", start_s=history[-1].wall_s + 3600.0)]
            for n, history in enumerate(slow)
        ]
        assert [degraded.judge(view, SETTINGS) for view in node(*histories)] == [None] * 4


def test_a_card_that_lost_more_than_twice_what_the_others_lost_is_blamed_itself() -> None:
    """The host explains 4 per cent of them, not 10."""
    cards = [confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.10 if n == 0 else -0.04) for n in range(4)]
    found = [degraded.judge(view, SETTINGS) for view in node(*cards)]
    assert [one.state if one else "" for one in found] == ["degraded", "", "", ""]


def test_a_card_that_stays_slow_when_the_others_are_well_is_blamed_in_the_end() -> None:
    """Once more than half of what the others measured since is good, they accuse it."""
    slow = [confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.06) for n in range(2)]
    after = [
        hourly([-0.06 if n == 0 else 0.0] * 6, uuid=f"GPU-{n}", start_s=slow[0][-1].wall_s + 3600.0) for n in range(2)
    ]
    found = [degraded.judge(view, SETTINGS) for view in node(*[[*a, *b] for a, b in zip(slow, after, strict=True)])]
    assert [one.state if one else "" for one in found] == ["degraded", ""]
