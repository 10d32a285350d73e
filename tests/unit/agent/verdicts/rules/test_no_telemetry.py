"""Tests of agent.verdicts.rules.no_telemetry."""

from agent.verdicts import keys
from agent.verdicts.rules import no_telemetry
from tests.support.views import THRESHOLDS, steady, view_of

SILENT = {keys.SILENT: 1.0}
TELLING = {keys.POWER: 1.0, keys.SILENT: 0.0}


def test_the_first_ticks_are_too_few() -> None:
    """A card that has just been seen is neither well nor ill."""
    conclusion = no_telemetry.judge(view_of([TELLING] * 2), THRESHOLDS)

    assert conclusion is not None
    assert (conclusion.state, conclusion.cause) == ("unknown", "starting")
    assert no_telemetry.judge(view_of([TELLING] * 3), THRESHOLDS) is None


def test_three_silent_ticks_are_unknown() -> None:
    """Two are not."""
    assert no_telemetry.judge(view_of([TELLING, TELLING, SILENT, SILENT]), THRESHOLDS) is None
    conclusion = no_telemetry.judge(view_of([TELLING, SILENT, SILENT, SILENT]), THRESHOLDS)
    assert conclusion is not None
    assert conclusion.cause == "silent"


def test_it_takes_three_telling_ticks_to_be_known_again() -> None:
    """No flapping while readings come and go."""
    held = frozenset({no_telemetry.NAME})

    assert no_telemetry.judge(view_of([SILENT, TELLING, TELLING], held=held), THRESHOLDS) is not None
    assert no_telemetry.judge(view_of([SILENT, TELLING, TELLING, TELLING], held=held), THRESHOLDS) is None


def test_lost_and_paused_cards_are_silent_for_a_known_reason() -> None:
    """Other rules speak for them."""
    assert no_telemetry.judge(view_of(steady(SILENT, 9), lost="GPU_IS_LOST"), THRESHOLDS) is None
    assert no_telemetry.judge(view_of(steady(SILENT, 9), paused=True), THRESHOLDS) is None
