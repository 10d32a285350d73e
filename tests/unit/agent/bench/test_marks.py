"""Which circumstances are said beside a figure."""

import msgspec

from agent.bench.marks import marks, marks_text
from agent.model.probe import Attribution, ProbeRecord
from tests.unit.agent.bench.results import training

CALM = training(64, watts=300.0)


def under(**seen: object) -> ProbeRecord:
    """Return the measurement under other circumstances."""
    return msgspec.structs.replace(CALM, attribution=Attribution(samples=20, **seen))  # type: ignore[arg-type]


def spread(share: float) -> ProbeRecord:
    """Return the measurement with repeats that lie so far apart."""
    timing = CALM.result.timing
    assert timing is not None
    timing = msgspec.structs.replace(timing, mad_s=share * timing.median_s)
    return msgspec.structs.replace(CALM, result=msgspec.structs.replace(CALM.result, timing=timing))


def test_a_measurement_whose_repeats_spread_is_marked() -> None:
    """What moves by a tenth from repeat to repeat decides no rank by a hundredth."""
    assert marks(CALM) == ()
    assert marks(spread(0.04)) == ()
    assert marks(spread(0.051)) == ("unsteady, repeats ±5.1%",)
    assert marks(spread(0.1)) == ("unsteady, repeats ±10.0%",)


def test_another_process_and_heat_are_marked() -> None:
    """A share too small to move a value is not."""
    assert marks(under(contended=True)) == ("contended",)
    assert marks(under(throttle_share={"hw_thermal": 0.5, "sw_power_cap": 1.0})) == ("slowed by hw_thermal for 50%",)
    assert marks(under(throttle_share={"hw_thermal": 0.01})) == ()


def test_a_row_of_several_measurements_says_each_mark_once() -> None:
    """A row without any stays empty."""
    assert marks_text([CALM, under(contended=True), under(contended=True), spread(0.1)]) == (
        "contended, unsteady, repeats ±10.0%"
    )
    assert marks_text([CALM]) == ""
