"""Cards that got slow together."""

from agent.config.settings import VerdictSettings
from agent.verdicts.rules.fell_together import judge
from tests.support.histories import card_view, confirmed, hourly, node

SETTINGS = VerdictSettings()


def test_cards_slow_together_are_unknown_and_probed_until_decided() -> None:
    """Nothing is proven against any of them, nor for it."""
    both = [confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.05) for n in range(2)]
    found = [judge(view, SETTINGS) for view in node(*both)]
    assert [(one.state, one.cause, one.suspect) for one in found if one] == [("unknown", "level", False)] * 2
    early = [judge(view, SETTINGS) for view in node(*[history[:6] for history in both])]
    assert [(one.state, one.cause, one.suspect) for one in early if one] == [("unknown", "level", True)] * 2


def test_a_card_slow_alone_is_left_to_the_other_rules() -> None:
    """A lone card and one among good ones did not fall together with any."""
    slow = confirmed(hourly([0.0] * 5), -0.05)
    assert judge(card_view(slow), SETTINGS) is None
    assert judge(node(slow, hourly([0.0] * 7, uuid="GPU-b"))[0], SETTINGS) is None


def test_cards_that_drift_together_are_unknown() -> None:
    """A small loss of half the node is the host's as well."""
    four = [hourly([0.0] * 20 + [-0.031] * 10, uuid=f"GPU-{n}", seed=n) for n in range(4)]
    found = [judge(view, SETTINGS) for view in node(*four)]
    assert [(one.state, one.cause) for one in found if one] == [("unknown", "drift")] * 4


def test_recovered_cards_are_let_go() -> None:
    """Three good runs later nothing is said any more."""
    both = [confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.05) for n in range(2)]
    well = [[*one, *hourly([0.0] * 3, uuid=one[0].uuid, start_s=one[-1].wall_s + 3600.0)] for one in both]
    assert [judge(view, SETTINGS) for view in node(*well)] == [None, None]
