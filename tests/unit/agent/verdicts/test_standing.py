"""Where a card stands by each figure, and by the mean of the two that a run judges."""

from collections.abc import Sequence

import msgspec

from agent.config.settings import DegradedSettings, VerdictSettings
from agent.model.probe import ProbeRecord
from agent.verdicts.rules import degraded, slow_drift
from agent.verdicts.standing import followed, standings
from agent.verdicts.view import CardView
from tests.support.histories import card_view, confirmed, hourly
from tests.support.records import reference

LIMITS = DegradedSettings()
SETTINGS = VerdictSettings()
BOTH = ("matmul and resnet50", "bf16")
STEP_SHAPE = "256x224x224x3"
REFERENCES = (reference(), reference(probe="resnet50", shape=STEP_SHAPE, unit="images/s", median=2088.0, mad=4.0))


def steps(products: Sequence[ProbeRecord], other: float) -> list[ProbeRecord]:
    """Return each product's training step, further off than it by ``other``."""
    made = []
    for one in products:
        share = (one.result.value or 0.0) / 660e12 + other
        result = msgspec.structs.replace(
            one.result, probe="resnet50", shape=STEP_SHAPE, unit="images/s", value=2088.0 * share
        )
        made.append(msgspec.structs.replace(one, wall_s=one.wall_s + 7.0, result=result))
    return made


def view_of(products: Sequence[ProbeRecord], other: float = 0.0) -> CardView:
    """Return the view of a card whose runs have both figures."""
    records = sorted([*products, *steps(products, other)], key=lambda one: one.wall_s)
    return card_view(records, REFERENCES)


def test_the_mean_is_followed_beside_the_figures_and_is_none_of_them() -> None:
    """What is judged figure by figure goes on to be."""
    view = view_of(hourly([0.0] * 3))
    assert [line for line in followed(view, LIMITS) if line not in standings(view, LIMITS)] == [BOTH]
    assert len(followed(view, LIMITS)[BOTH].measurements) == 3


def test_what_slows_both_by_less_than_one_figures_threshold_condemns() -> None:
    """The mean is less noisy, so its threshold is lower."""
    between = -(LIMITS.drop + LIMITS.drop_both) / 2
    found = degraded.judge(view_of(confirmed(hourly([0.0] * 5), between)), SETTINGS)
    assert found is not None
    assert (found.state, "matmul and resnet50 bf16" in found.summary) == ("degraded", True)
    assert found.evidence["threshold_ratio"] == -LIMITS.drop_both
    assert "value" not in found.evidence


def test_one_figure_alone_needs_more_and_is_named() -> None:
    """A slow product beside a good step, and just below one's threshold."""
    one = degraded.judge(view_of(confirmed(hourly([0.0] * 5), -0.045), other=0.045), SETTINGS)
    assert one is not None
    assert (one.state, one.summary.startswith("matmul bf16 is 4.5% below")) == ("degraded", True)
    less = -(LIMITS.drop + LIMITS.drop_both) / 2
    assert degraded.judge(view_of(confirmed(hourly([0.0] * 5), less), other=-less), SETTINGS) is None


def test_a_small_loss_of_both_is_summed_up_by_their_mean() -> None:
    """Noise that goes opposite ways in the two is clipped in each and cancels in the mean."""
    noisy = [-0.045 if hour % 2 else -0.015 for hour in range(11)]
    products = hourly([0.0, 0.0, *noisy])
    others = hourly([0.0, 0.0, *(-0.06 - one for one in noisy)])
    view = card_view([*products, *steps(others, 0.0)], REFERENCES)
    of_lines = followed(view, LIMITS)
    assert [line for line, one in of_lines.items() if one.track.drift.drifting] == [BOTH]
    found = slow_drift.judge(view, SETTINGS)
    assert found is not None
    assert (found.state, found.summary.startswith("matmul and resnet50 bf16 has been 3.0% below")) == ("degraded", True)


def test_an_upgrade_leaves_what_the_mean_condemned_condemned() -> None:
    """Until references under the new driver settle it."""
    between = -(LIMITS.drop + LIMITS.drop_both) / 2
    slow = confirmed(hourly([0.0] * 5), between)
    later = hourly([between] * 2, start_s=slow[-1].wall_s + 3600.0, driver="999.1")
    found = degraded.judge(view_of([*slow, *later]), SETTINGS)
    assert found is not None
    assert (found.state, found.cause) == ("degraded", degraded.DISPUTED)
