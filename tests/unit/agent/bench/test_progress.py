"""How much time is left, and how that is said where there is no terminal."""

import io

from rich.console import Console

from agent.bench.plan import PlannedStep
from agent.bench.progress import Pace, Reporter
from agent.model.probe import Device, Environment, Hello, Phase, ProbeRequest
from tests.support.clock import FakeClock


def step(name: str, expected_s: float) -> PlannedStep:
    """Return a step."""
    return PlannedStep(name=name, requests=(ProbeRequest("matmul"),), expected_s=expected_s)


def test_time_left_follows_the_pace_of_what_was_done() -> None:
    """Twice as slow as expected: the rest as well, less what the running step has behind it."""
    pace = Pace()
    steps = [step("a", 10.0), step("b", 20.0)]
    assert pace.left_s(steps) == 30.0
    assert pace.left_s(steps, running_s=4.0) == 26.0
    assert pace.left_s(steps, running_s=40.0) == 20.0
    pace.take(10.0, 20.0)
    assert pace.left_s(steps[1:]) == 40.0
    assert pace.left_s([]) == 0.0


def test_without_a_terminal_each_step_has_a_line() -> None:
    """How many, how long, how much longer; no control characters."""
    clock, out = FakeClock(), io.StringIO()
    reporter = Reporter([step("cold/graph", 20.0), step("matmul", 40.0)], 1, Console(file=out, width=200), clock)
    with reporter.shown():
        for planned in (step("cold/graph", 20.0), step("matmul", 40.0)):
            reporter.step(planned)
            reporter.event(Hello(1, Environment(tensorflow="2.21.0"), Device("cpu")))
            reporter.event(Phase(0, "measure", 0.0))
            clock.advance(60.0)
        reporter.finish()
    assert out.getvalue() == "2/3 cold/graph: 60.0 s, about 2 min left\n3/3 matmul: 60.0 s\n"


def test_a_terminal_shows_a_bar_with_step_phase_and_time_left() -> None:
    """And leaves nothing behind of it but what is below."""
    clock, out = FakeClock(), io.StringIO()
    reporter = Reporter([step("cold/graph", 20.0)], 0, Console(file=out, width=120, force_terminal=True), clock)
    with reporter.shown():
        reporter.event(Phase(0, "before any step", 0.0))
        reporter.step(step("cold/graph", 20.0))
        reporter.event(Hello(1, Environment(tensorflow="2.21.0"), Device("cpu")))
        reporter.event(Phase(0, "measure", 0.0))
    page = out.getvalue()
    assert "cold/graph: measure" in page
    assert "about 20 s left" in page
    assert "\n1/1" not in page
