"""Cards about which no judged probe says anything."""

import msgspec
import pytest

from agent.config.settings import VerdictSettings
from agent.model.reference import Reference
from agent.verdicts.rules.unjudged import judge
from agent.verdicts.view import CardView
from tests.support.histories import card_view, hourly
from tests.support.records import DAY_S, START_S, record, reference


def cause(view: CardView) -> str:
    """Return the cause; empty where the card is judged."""
    found = judge(view, VerdictSettings())
    assert found is None or found.state == "unknown"
    return found.cause if found else ""


@pytest.mark.parametrize(
    ("driver", "references", "expected"),
    [
        ("580.159.04", (reference(),), ""),
        ("580.159.04", (), "learning"),
        ("610.10.1", (reference(),), "learning"),
        ("610.10.1", (reference(), reference(driver="610.10.1", disputed=True)), "reference_disputed"),
        ("610.10.1", (reference(), reference(driver="610.10.1")), ""),
    ],
)
def test_a_card_is_judged_by_a_fitting_undisputed_reference_only(
    driver: str, references: tuple[Reference, ...], expected: str
) -> None:
    """A reference made under another driver is stale, not used; missing is never healthy."""
    assert cause(card_view(hourly([0.0] * 5, driver=driver), references)) == expected


def test_skipped_and_failed_probes_leave_a_card_unjudged() -> None:
    """Neither says how fast the card is."""
    assert cause(card_view([])) == "not_probed"
    skipped = record(START_S, status="skipped", reason="busy")
    failed = record(START_S + 1, status="error", reason="oom")
    assert cause(card_view([skipped, failed])) == "not_probed"


def test_a_week_without_a_judged_probe_is_too_long() -> None:
    """On a card that is never idle the last probe says less and less."""
    runs = hourly([0.0] * 5)
    assert cause(card_view(runs, now_wall_s=runs[-1].wall_s + 6.9 * DAY_S)) == ""
    assert cause(card_view(runs, now_wall_s=runs[-1].wall_s + 7.1 * DAY_S)) == "stale"


def test_every_line_must_be_judged() -> None:
    """A card with a reference for one of its two figures is still learning."""
    run = record(START_S)
    other = msgspec.structs.replace(run, result=msgspec.structs.replace(run.result, probe="resnet50"))
    found = judge(card_view([run, other]), VerdictSettings())
    assert found is not None
    assert found.summary.startswith("resnet50 bf16:")
