"""A card behind its own reference: when it is said, why, and when it is somebody else's fault."""

from collections.abc import Sequence

import msgspec
import pytest

from agent.config.settings import VerdictSettings
from agent.model.probe import ProbeRecord
from agent.model.reference import Reference
from agent.verdicts.references import new_references
from agent.verdicts.rules.degraded import judge
from agent.verdicts.view import CardView, Conclusion
from tests.support.histories import card_view, confirmed, hourly, node, on_suspicion
from tests.support.records import DAY_S, HOUR_S, START_S, record, reference

SETTINGS = VerdictSettings()


def verdict(view: CardView) -> tuple[str, str, bool] | None:
    """Return state, cause and whether another probe is asked for."""
    found = judge(view, SETTINGS)
    return (found.state, found.cause, found.suspect) if found else None


def concluded(view: CardView) -> Conclusion:
    """Return the conclusion, which must be there."""
    found = judge(view, SETTINGS)
    assert found is not None
    return found


def test_a_card_at_its_reference_gets_no_verdict() -> None:
    """Nothing is said about what is as it should be."""
    assert verdict(card_view(hourly([0.0] * 30, seed=1))) is None


def test_a_card_without_reference_or_probes_gets_no_verdict() -> None:
    """What cannot be compared is not slow; another rule says that it is unknown."""
    assert verdict(card_view([])) is None
    assert verdict(card_view(hourly([-0.5] * 30), ())) is None


def test_a_slow_run_asks_for_more_and_says_so() -> None:
    """One run is a suspicion: the state stays ok."""
    assert verdict(card_view(hourly([0.0] * 5 + [-0.05]))) == ("ok", "suspected", True)


def test_five_per_cent_are_confirmed_with_numbers_and_thresholds() -> None:
    """Three runs later it is degraded, with the evidence and what to do."""
    found = concluded(card_view(confirmed(hourly([0.0] * 5), -0.05)))
    assert (found.state, found.cause, found.suspect) == ("degraded", "unexplained", False)
    assert found.evidence["deviation_ratio"] == pytest.approx(-0.05)
    assert found.evidence["threshold_ratio"] == -SETTINGS.degraded.drop
    assert "5.0%" in found.summary
    assert found.next_action


def test_an_outlier_that_the_next_runs_do_not_confirm_is_dropped() -> None:
    """A lone slow run leaves no trace once the next is good."""
    runs = hourly([0.0] * 5 + [-0.06])
    assert verdict(card_view([*runs, *on_suspicion(runs[-1], 0.0, rounds=1)])) is None


def test_a_card_that_hovers_is_not_probed_over_and_over() -> None:
    """After two rounds that came to nothing within six hours the schedule is left to it."""
    runs = hourly([0.0])
    for _ in range(2):
        (slow,) = hourly([-0.04], start_s=runs[-1].wall_s + HOUR_S)
        assert verdict(card_view([*runs, slow])) == ("ok", "suspected", True)
        runs += [slow, *on_suspicion(slow, 0.0)]
    (slow,) = hourly([-0.04], start_s=runs[-1].wall_s + HOUR_S)
    assert verdict(card_view([*runs, slow])) == ("ok", "suspected", False)
    (later,) = hourly([-0.04], start_s=slow.wall_s + 8 * HOUR_S)
    assert verdict(card_view([*runs, later])) == ("ok", "suspected", True)


@pytest.mark.parametrize(
    "changes",
    [{"judged": False}, {"contended": True}, {"trigger": "burnin"}, {"status": "timeout", "reason": "deadline"}],
)
def test_throttled_contended_hot_and_failed_runs_prove_nothing(changes: dict[str, object]) -> None:
    """However slow, they neither condemn nor break a row."""
    runs = hourly([0.0] * 5)
    dirty = [record(runs[-1].wall_s + 60.0 * n, 400e12, **changes) for n in range(1, 20)]  # type: ignore[arg-type]
    assert verdict(card_view([*runs, *dirty])) is None
    slow = confirmed(runs, -0.05)
    assert verdict(card_view([*slow, *[msgspec.structs.replace(one, wall_s=one.wall_s + DAY_S) for one in dirty]])) == (
        "degraded",
        "unexplained",
        False,
    )


def upgraded(deviation: float, hours: int) -> list[ProbeRecord]:
    """Return runs under another driver, two days later."""
    return hourly([deviation] * hours, start_s=START_S + 2 * DAY_S, seed=4, driver="610.10.1")


def learnt(records: Sequence[ProbeRecord]) -> tuple[Reference, ...]:
    """Return the plain reference and what ``records`` make beside it."""
    made = new_references(records, (reference(),), SETTINGS.degraded, START_S + 9 * DAY_S)
    return reference(), *made


@pytest.mark.parametrize("hours", [1, 10, 40])
@pytest.mark.parametrize("deviation", [-0.05, 0.0, 0.04])
def test_a_driver_upgrade_does_not_clear_a_degraded_card(hours: int, deviation: float) -> None:
    """Before the new reference is made and after, whatever the new driver gains."""
    records = [*confirmed(hourly([0.0] * 5), -0.05), *upgraded(deviation, hours)]
    found = concluded(card_view(records, learnt(records)))
    assert (found.state, found.cause) == ("degraded", "reference_disputed")
    assert "reference renew" in found.next_action


def test_a_driver_upgrade_of_a_healthy_card_accuses_nobody() -> None:
    """Its old reference is stale and not used; the new one fits."""
    records = [*hourly([0.0] * 5, seed=1), *upgraded(0.0, 40)]
    assert verdict(card_view(records, learnt(records))) is None
    assert verdict(card_view([*hourly([0.0] * 5), *upgraded(-0.2, 10)])) is None


def test_an_operator_who_renews_clears_the_dispute() -> None:
    """The renewed reference counts, whatever was before."""
    records = [*confirmed(hourly([0.0] * 5), -0.05), *upgraded(-0.05, 40)]
    renewed = reference(driver="610.10.1", median=0.95 * 660e12, origin="renewed", made_wall_s=START_S + 10 * DAY_S)
    assert verdict(card_view(records, (*learnt(records), renewed))) is None


def test_a_lowered_power_limit_is_named_as_the_cause() -> None:
    """The card is slow, and the setting that makes it so is the evidence."""
    slow = [
        msgspec.structs.replace(
            run,
            attribution=msgspec.structs.replace(run.attribution, power_limit_watts=500.0),  # type: ignore[type-var]
        )
        for run in confirmed(hourly([0.0] * 5), -0.1)[5:]
    ]
    assert verdict(card_view([*hourly([0.0] * 5), *slow])) == ("degraded", "power_limit_below_default", False)


def good(uuid: str, until: ProbeRecord) -> list[ProbeRecord]:
    """Return a healthy neighbour's runs, the last just after ``until``."""
    hours = int((until.wall_s - START_S) // HOUR_S)
    return [*hourly([0.0] * hours, uuid=uuid, seed=5), record(until.wall_s + 10.0, uuid=uuid)]


def test_a_slow_card_among_good_ones_is_the_cards_fault() -> None:
    """The neighbours, measured since, are its accusers."""
    slow = confirmed(hourly([0.0] * 5), -0.05)
    views = node(slow, *[good(f"GPU-{n}", slow[-1]) for n in range(3)])
    assert [verdict(view) for view in views] == [("degraded", "unexplained", False), None, None, None]


def test_neighbours_are_asked_to_witness_before_a_card_is_condemned() -> None:
    """Without a neighbour measured since the slowdown began, the verdict waits and the neighbours are probed."""
    slow = confirmed(hourly([0.0] * 5), -0.05)
    before = hourly([0.0] * 5, uuid="GPU-b", seed=5)
    suspected, witness = node(slow[:6], before)
    assert verdict(suspected) == ("ok", "suspected", True)
    assert verdict(witness) == ("ok", "witness", True)
    assert verdict(node(slow, before)[0]) == ("ok", "suspected", True)
    assert verdict(node(slow, [*before, record(slow[-1].wall_s, uuid="GPU-b")])[0]) == (
        "degraded",
        "unexplained",
        False,
    )


def test_a_card_whose_neighbours_stay_busy_is_condemned_after_two_hours() -> None:
    """Witnesses that cannot be had do not keep a verdict for ever."""
    slow = confirmed(hourly([0.0] * 5), -0.05)
    slow += hourly([-0.05] * 2, start_s=slow[-1].wall_s + HOUR_S)
    assert verdict(node(slow, hourly([0.0] * 5, uuid="GPU-b"))[0]) == ("degraded", "unexplained", False)


@pytest.mark.parametrize(("slow_cards", "cards", "blamed"), [(1, 2, True), (2, 2, False), (3, 8, True), (4, 8, False)])
def test_half_of_the_node_together_is_the_hosts_doing(slow_cards: int, cards: int, blamed: bool) -> None:
    """At least half of the cards, and at least two, within two hours: no card is blamed."""
    histories = [confirmed(hourly([0.0] * 5, uuid=f"GPU-{n}"), -0.05) for n in range(slow_cards)]
    histories += [good(f"GPU-{n}", histories[0][-1]) for n in range(slow_cards, cards)]
    found = verdict(node(*histories)[0])
    assert found == (("degraded", "unexplained", False) if blamed else None)


def test_a_card_that_was_slow_before_stays_blamed_when_the_others_follow() -> None:
    """What fell a day earlier did not fall together."""
    early = confirmed(hourly([0.0] * 5), -0.05)
    early += hourly([-0.05] * 24, start_s=early[-1].wall_s + HOUR_S)
    late = [confirmed(hourly([0.0] * 28, uuid=f"GPU-{n}"), -0.05) for n in range(3)]
    assert [verdict(view) for view in node(early, *late)] == [("degraded", "unexplained", False), None, None, None]


def test_the_worst_line_is_reported() -> None:
    """A card slow in one figure is slow, however good the other."""
    other = [
        msgspec.structs.replace(
            run, result=msgspec.structs.replace(run.result, probe="resnet50", shape="256x224x224x3")
        )
        for run in hourly([0.0] * 7, seed=2)
    ]
    references = (reference(), reference(probe="resnet50", shape="256x224x224x3"))
    records = [*other, *confirmed(hourly([0.0] * 5), -0.05)]
    assert verdict(card_view(records, references)) == ("degraded", "unexplained", False)
