"""Tests of benchmarks.faultbench.score: a bench that cannot find fault proves nothing."""

from collections.abc import Mapping

import pytest

from benchmarks.faultbench.play import Run, Said
from benchmarks.faultbench.scenario import Expect, Scenario
from benchmarks.faultbench.score import score

THERMAL: Said = ("0", "thermal_throttling", "hw_thermal", "throttled")


def scenario(*expect: Expect, healthy: bool = False, allow: tuple[str, ...] = ()) -> Scenario:
    """Return a scenario whose change comes at 50."""
    return Scenario(name="s", family="f", healthy=healthy, duration_s=100, expect=expect, allow=allow)


def run(said: Mapping[Said, tuple[tuple[float, float], ...]], **more: object) -> Run:
    """Return a run in which this was said; the change came at 55."""
    return Run(
        said=said,
        moments={50.0: 55.0, 80.0: 82.0},
        end_s=100.0,
        card_states=("ok",),
        node_state="ok",
        workloads=("ok",),
        exporter=more.get("exporter", ()),  # type: ignore[arg-type]
        zscore=(),
        rule_errors=0,
    )


HOT = Expect(rule="thermal_throttling", gpu=0, state="throttled", from_s=50, within_s=20)


@pytest.mark.parametrize(
    ("stretch", "found", "alarms"),
    [((60.0, 99.0), 1, 0), ((55.0, 56.0), 1, 0), ((76.0, 99.0), 0, 0), ((40.0, 99.0), 1, 1), ((40.0, 50.0), 0, 1)],
    ids=["in time", "at once and gone", "too late", "before its cause", "only before its cause"],
)
def test_what_is_expected_must_come_in_time_and_not_before(
    stretch: tuple[float, float], found: int, alarms: int
) -> None:
    """Within twenty seconds of the moment the change came under this seed."""
    total = score([(scenario(HOT), run({THERMAL: (stretch,)}))])

    assert total.rules["thermal_throttling"].found == found
    assert sum(total.false_alarms.values()) == alarms
    assert bool(total.missed) is (found == 0)


def test_a_finding_about_another_card_or_state_is_no_find() -> None:
    """Subject and state count."""
    other: Said = ("1", "thermal_throttling", "hw_thermal", "throttled")
    total = score([(scenario(HOT), run({other: ((60.0, 90.0),)}))])

    assert total.recall == 0
    assert sum(total.false_alarms.values()) == 1


def test_an_alarm_on_a_healthy_node_counts_against_the_rules() -> None:
    """Information does not, unless somebody asked for silence."""
    info: Said = ("0", "low_clocks", "unexplained", "ok")
    total = score(
        [
            (scenario(healthy=True), run({THERMAL: ((10.0, 20.0),)})),
            (scenario(healthy=True), run({info: ((1.0, 2.0),)})),
        ]
    )

    assert (total.healthy_alarmed, total.healthy_runs) == (1, 2)
    assert total.rules["low_clocks"].wrong == 1


def test_what_is_allowed_counts_for_nothing() -> None:
    """Neither for nor against."""
    total = score([(scenario(healthy=True, allow=("thermal_throttling",)), run({THERMAL: ((10.0, 20.0),)}))])

    assert not total.healthy_alarmed
    assert total.rules["thermal_throttling"].wrong == 0 if "thermal_throttling" in total.rules else True


def test_what_lingers_is_counted() -> None:
    """After its cause is gone and the time it may take is over."""
    gone = Expect(rule="thermal_throttling", gpu=0, state="throttled", from_s=50, within_s=20, until_s=80)
    lingering = score([(scenario(gone), run({THERMAL: ((60.0, 103.0),)}))])
    prompt = score([(scenario(gone), run({THERMAL: ((60.0, 101.0),)}))])

    assert lingering.rules["thermal_throttling"].lingered == 1
    assert prompt.rules["thermal_throttling"].lingered == 0


def test_a_baseline_finds_by_any_alert_about_the_subject() -> None:
    """However late; before the cause it is no find, on a healthy node an alarm."""
    late, early = (1500.0, "0"), (10.0, "0")
    total = score(
        [
            (scenario(HOT), run({}, exporter=(late,))),
            (scenario(HOT), run({}, exporter=(early,))),
            (scenario(healthy=True), run({}, exporter=(late,))),
        ]
    )

    assert (total.baseline_found["exporter rules"], total.baseline_found["of"]) == (1, 2)
    assert total.baseline_healthy_alarmed["exporter rules"] == 1


def test_scores_do_not_share_their_counts() -> None:
    """A second score starts at nothing."""
    score([(scenario(HOT), run({}))])

    assert not score([(scenario(HOT), run({THERMAL: ((60.0, 61.0),)}))]).missed
