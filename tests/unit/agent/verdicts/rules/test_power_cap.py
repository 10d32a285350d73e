"""Tests of agent.verdicts.rules.power_cap."""

import pytest

from agent.verdicts.rules import power_cap
from tests.support.snapshots import busy_values, h200_values
from tests.support.views import THRESHOLDS, steady, view_of


@pytest.mark.parametrize(("limit", "cause"), [(700.0, "default_limit"), (500.0, "lowered_limit")])
def test_a_capped_card_is_ok_and_says_why(limit: float, cause: str) -> None:
    """A lowered limit is pointed out, a default one is how a loaded card runs."""
    values = busy_values(power_limit_enforced_watts=limit, throttle_active_sw_power_cap=1.0)
    conclusion = power_cap.judge(view_of(steady(values)), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("ok", cause)
    assert conclusion.evidence["power_limit_watts"] == limit


def test_a_card_that_keeps_its_limits_to_itself_is_capped_all_the_same() -> None:
    """Nothing is made up about the limit."""
    values = busy_values(throttle_active_sw_power_cap=1.0)
    for key in ("power_limit_enforced_watts", "power_limit_default_watts"):
        del values[key]
    conclusion = power_cap.judge(view_of(steady(values)), THRESHOLDS)

    assert conclusion is not None
    assert conclusion.evidence.keys() == {"capped_ratio", "window_seconds"}


@pytest.mark.parametrize(
    "values", [busy_values(throttle_active_sw_power_cap=0.0), h200_values(throttle_active_sw_power_cap=1.0)]
)
def test_a_card_that_is_not_capped_or_not_busy_is_not_mentioned(values: dict[str, float]) -> None:
    """Now and then is not worth a word either."""
    assert power_cap.judge(view_of(steady(values)), THRESHOLDS) is None
