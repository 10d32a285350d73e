"""Cards compared with what their model is known to reach."""

import pytest

from agent.config.settings import VerdictSettings
from agent.verdicts.rules.below_floor import judge
from tests.support.histories import card_view, hourly


@pytest.mark.parametrize(
    ("model", "deviation", "runs", "expected"),
    [
        ("NVIDIA H200", 0.0, 5, ""),
        ("NVIDIA H200", -0.14, 5, ""),
        ("NVIDIA H200", -0.2, 5, "degraded"),
        ("NVIDIA H200", -0.2, 4, ""),
        ("NVIDIA H100 80GB HBM3", -0.2, 5, ""),
        ("NVIDIA H100 80GB HBM3", -0.5, 5, "ok"),
        ("Made Up", -0.9, 5, ""),
    ],
)
def test_only_a_floor_of_our_own_runs_condemns(model: str, deviation: float, runs: int, expected: str) -> None:
    """A published figure of another method informs; a model we do not know is not judged."""
    found = judge(card_view(hourly([deviation] * runs), name=model), VerdictSettings())
    assert (found.state if found else "") == expected


def test_one_run_above_the_floor_acquits() -> None:
    """The best of the last runs counts."""
    assert judge(card_view(hourly([-0.2] * 4 + [0.0]), name="NVIDIA H200"), VerdictSettings()) is None


def test_a_card_without_probes_is_not_judged() -> None:
    """Nothing measured, nothing said."""
    assert judge(card_view([], name="NVIDIA H200"), VerdictSettings()) is None
