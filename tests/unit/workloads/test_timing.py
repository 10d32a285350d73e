"""The timing core, on a simulated host and device."""

from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from tests.support.clock import FakeClock
from workloads.timing import DISPATCH_SHARE, FEWEST_REPEATS, Measurement, Plan, mean, measure, median

PLAN = Plan(window_s=2.0)
BLOCK_S = 0.042
"""A blocking kernel's time on an H200."""


class Device:
    """Does what is enqueued, in order, while the host goes on."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.free_at_s = clock.monotonic_s()
        self.busy_s = 0.0

    def enqueue(self, host_s: float, device_s: float) -> None:
        """Spend the host's time; the device starts with it and cannot end before it."""
        start_s = max(self.free_at_s, self.clock.monotonic_s())
        self.clock.advance(host_s)
        self.free_at_s = max(start_s + device_s, self.clock.monotonic_s())
        self.busy_s += device_s

    def wait(self, fetch_s: float) -> None:
        """Let time pass until the device is idle, and for the fetch."""
        self.clock.advance(max(0.0, self.free_at_s - self.clock.monotonic_s()) + fetch_s)


class Steps:
    """Work of ``device_s`` on the device and ``host_s`` on the host a step; the first ones may be slower."""

    def __init__(self, device: Device, host_s: float, device_s: float, slow: tuple[float, ...] = ()) -> None:
        self._device = device
        self._host_s = host_s
        self._device_s = device_s
        self._slow = list(slow)
        self.started_at_s: list[float] = []
        self.finishes = 0

    def start(self) -> None:
        """Enqueue a step."""
        self.started_at_s.append(self._device.clock.monotonic_s())
        factor = self._slow.pop(0) if self._slow else 1.0
        self._device.enqueue(self._host_s, self._device_s * factor)

    def finish(self) -> None:
        """Fetch."""
        self.finishes += 1
        self._device.wait(0.0005)


class Measure(Protocol):
    """Measures simulated work and returns what came of it."""

    def __call__(
        self,
        host_s: float,
        device_s: float,
        plan: Plan = ...,
        *,
        slow: tuple[float, ...] = (),
        block: bool = True,
        slow_blocks: tuple[float, ...] = (),
    ) -> tuple[Measurement, Steps, list[str]]:
        """Run the timing core."""


@pytest.fixture
def run() -> Measure:
    """Return a runner of the timing core on a fresh simulation."""

    def runner(
        host_s: float,
        device_s: float,
        plan: Plan = PLAN,
        *,
        slow: tuple[float, ...] = (),
        block: bool = True,
        slow_blocks: tuple[float, ...] = (),
    ) -> tuple[Measurement, Steps, list[str]]:
        clock = FakeClock()
        device = Device(clock)
        work = Steps(device, host_s, device_s, slow)
        phases: list[str] = []
        blocker = Steps(device, 0.0001, BLOCK_S, slow_blocks) if block else None
        return measure(work, plan, clock, phases.append, blocker), work, phases

    return runner


def test_a_filled_device_gives_its_own_step_time(run: Measure) -> None:
    """Where the device is the limit, the step time is the device's and the host has no share."""
    result, _, _ = run(0.015, 0.125)
    assert result.step_s == pytest.approx(0.125, rel=0.01)
    assert result.timing.host_share == pytest.approx(0.0, abs=0.01)


def test_a_starved_device_shows_the_share_of_the_host(run: Measure) -> None:
    """Where the host needs 10 ms for 4 ms of work, the device waits 60 % of the time."""
    result, _, _ = run(0.010, 0.004)
    assert result.step_s == pytest.approx(0.010, rel=0.01)
    assert result.timing.host_share == pytest.approx(0.6, abs=0.06)


def test_a_hiccup_makes_no_host_of_a_filled_device(run: Measure) -> None:
    """Blocking kernels that ran a tenth longer than the ones before the step would look like a step cut short."""
    hiccup = (1.0, 1.1) + (1.0, 1.1) * 4
    result, _, _ = run(0.001, 0.082, slow_blocks=hiccup)
    assert result.timing.host_share is not None
    assert result.timing.host_share <= 0.001 / 0.082 * 1.01


@pytest.mark.parametrize(
    ("host_s", "device_s", "longest_s"),
    [(0.001, 0.082, 1.1), (0.060, 0.123, 1.15), (0.110, 0.123, 1.35)],
)
def test_the_host_share_is_part_of_settling(run: Measure, host_s: float, device_s: float, longest_s: float) -> None:
    """A product, a training step, a training step of a slow host: little time at load beyond the settling."""
    result, work, _ = run(host_s, device_s, Plan(window_s=1.0))
    assert 1.0 <= result.window_start_s - work.started_at_s[1] <= longest_s
    assert result.timing.host_share == pytest.approx(0.0, abs=0.01)


@pytest.mark.parametrize(("host_s", "device_s"), [(0.0001, 0.0002), (0.001, 0.02), (0.015, 0.125), (0.0001, 0.082)])
def test_dispatch_is_below_one_percent_of_a_batch(run: Measure, host_s: float, device_s: float) -> None:
    """A batch is so long that what one fetch exposes is lost in it."""
    result, _, _ = run(host_s, device_s)
    work_s = result.timing.inner * device_s
    assert (result.timing.median_s - work_s) / result.timing.median_s <= DISPATCH_SHARE * 1.05


def test_one_fetch_ends_a_batch(run: Measure) -> None:
    """Steps outnumber fetches by the batch length within the window."""
    result, work, _ = run(0.0001, 0.0002, Plan(window_s=1.0, settle_s=0.0))
    assert result.timing.inner > 50
    assert work.finishes < len(work.started_at_s) / 10


def test_the_first_call_stands_apart(run: Measure) -> None:
    """Compilation is told and never enters the result."""
    result, _, _ = run(0.001, 0.1, slow=(300.0,))
    assert result.timing.first_call_s == pytest.approx(30.0, rel=0.01)
    assert result.timing.max_s < 1.0


def test_warms_up_until_two_steps_agree(run: Measure) -> None:
    """Slow first steps are waited out before anything is judged."""
    result, _, _ = run(0.001, 0.1, slow=(1.0, 8.0, 4.0, 2.0))
    assert result.timing.warmup_s > 1.4
    assert result.timing.max_s == pytest.approx(result.timing.min_s)


def test_warm_up_ends_where_steps_never_agree(run: Measure) -> None:
    """An unsteady device is measured all the same."""
    plan = Plan(window_s=1.0, settle_s=0.0, warmup_limit_s=2.0)
    result, _, _ = run(0.001, 1.0, plan, slow=tuple(2.0**power for power in range(12)), block=False)
    assert result.timing.warmup_s < 40
    assert result.timing.repeats >= FEWEST_REPEATS


def test_settles_at_load_before_the_window(run: Measure) -> None:
    """At least the settling time passes between the first call and the window, without a pause of the device."""
    result, work, _ = run(0.001, 0.05, Plan(window_s=1.0, settle_s=1.0))
    second_start_s = work.started_at_s[1]
    assert result.window_start_s - second_start_s >= 1.0
    assert result.load_s == pytest.approx(result.window_end_s - second_start_s)


@pytest.mark.parametrize("device_s", [0.0005, 0.05, 0.3, 0.9])
def test_the_window_is_about_as_long_as_asked(run: Measure, device_s: float) -> None:
    """Whole batches fill the window as near as they can."""
    result, _, _ = run(0.0001, device_s, Plan(window_s=3.0))
    assert result.window_end_s - result.window_start_s == pytest.approx(3.0, rel=0.11)


@pytest.mark.parametrize(("host_s", "device_s", "swing_share"), [(0.001, 0.082, 0.03), (0.015, 0.1223, 0.003)])
def test_every_process_makes_the_same_batches(run: Measure, host_s: float, device_s: float, swing_share: float) -> None:
    """Where in the swings of a card at its power cap the warm-up falls must not decide what is timed."""
    swing = [1.0 + swing_share * part for part in (0.0, 1.0, 0.3, -0.7, -1.0, 0.0, 0.6)]
    made = set()
    for start in range(len(swing)):
        factors = tuple(swing[(start + step) % len(swing)] for step in range(200))
        result, _, _ = run(host_s, device_s, Plan(window_s=1.0), slow=factors)
        made.add((result.timing.inner, result.timing.repeats))
    assert len(made) == 1


@pytest.mark.parametrize(("average", "step_s"), [(mean, 0.4), (median, 0.3)])
def test_the_average_that_was_planned_becomes_the_result(
    run: Measure, average: Callable[[Sequence[float]], float], step_s: float
) -> None:
    """A mean holds all of a card's swings, a median leaves out what disturbed one batch."""
    warm = (1.0, 1.0, 1.0)
    plan = Plan(window_s=0.9, settle_s=0.0, average=average)
    result, _, _ = run(0.0001, 0.3, plan, slow=(*warm, 1.0, 2.0, 1.0), block=False)
    assert result.step_s == pytest.approx(step_s, rel=0.01)
    assert result.timing.median_s == pytest.approx(0.3, rel=0.01)


@pytest.mark.parametrize(("host_s", "device_s"), [(0.015, 0.1223), (0.001, 0.082), (0.002, 0.015), (0.0001, 0.0002)])
@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0, 0.5])
@pytest.mark.parametrize("length", [2, 3, 4, 5, 8])
def test_a_disturbed_warm_up_does_not_stretch_the_window(
    run: Measure, host_s: float, device_s: float, factor: float, length: int
) -> None:
    """Somebody else had the card for a few steps: what follows takes no multiple of what was planned."""
    result, _, _ = run(host_s, device_s, Plan(window_s=1.0), slow=(factor,) * length)
    assert result.window_end_s - result.window_start_s <= 3.2


def test_work_that_takes_no_time_is_measured(run: Measure) -> None:
    """As on a clock too coarse for it."""
    result, _, _ = run(0.0, 0.0, Plan(window_s=0.001, settle_s=0.0), block=False)
    assert result.timing.repeats >= 1


def test_slow_work_is_repeated_often_enough(run: Measure) -> None:
    """The least number of repeats holds even where one outlasts the window."""
    result, _, _ = run(0.001, 4.0, Plan(window_s=1.0, settle_s=0.0, batches=3), block=False)
    assert (result.timing.repeats, result.timing.inner) == (3, 1)


def test_no_host_share_without_a_blocking_kernel(run: Measure) -> None:
    """Not measured is None, not 0."""
    assert run(0.001, 0.05, block=False)[0].timing.host_share is None


def test_tells_its_phases_in_order(run: Measure) -> None:
    """Whoever watches knows what is going on."""
    assert run(0.001, 0.05)[2] == ["first_call", "warmup", "settle", "measure"]


@pytest.mark.parametrize(("values", "middle"), [([3.0], 3.0), ([1.0, 9.0, 2.0], 2.0), ([4.0, 1.0, 2.0, 9.0], 3.0)])
def test_median(values: list[float], middle: float) -> None:
    """The middle value, or the mean of the two middle ones."""
    assert median(values) == middle
