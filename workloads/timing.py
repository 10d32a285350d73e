"""The one way a step is timed, whatever the probe.

The order, and what each part is for:

1. *first call*: tracing, algorithm selection, compilation; reported apart.
2. *warm-up*: single steps, each fetched, until two in a row agree within 10 % (bounded). The shorter of these is the
   synchronous step time S; the shortest time in which the host enqueued one is E.
3. *batch length*: a batch is ``inner`` steps enqueued one after another and one fetch at its end. A first batch gives
   the pipelined step time P. ``inner`` follows from the window and P alone, so that processes make the same batches
   of all but short steps: as many steps as fill the window's share, rounded. S - P is what one fetch exposes of the
   host; where that is not below 1 % of such a batch, the batch is longer, as long as the whole window at most.
4. *settling*: batches at full load until ``settle_s`` have passed since the warm-up began, so that clocks and power
   have found their level. Work on the device alone, D, is measured within that time.
5. *window*: as many batches as fill ``window_s`` by P, but at least 3, or 2 where no more are planned. Their average is
   the result; median, minimum, maximum and median absolute deviation stand beside it. On a card the average is the
   mean: at its power cap it swings by 4 % within a second, and only the mean holds all of a swing (fourteen fresh
   processes on one H200 differ by 0.7 % in the median of three batches, by 0.2 % in their mean). On a CPU it is the
   median, which leaves out what other processes took.

**Host share** is the share of a pipelined step during which the device waits for the host: 1 - D/P, with P from the
window's first batch. D is found by giving the device a blocking kernel that outlasts the host's enqueueing: the step
then runs behind it with no host in the way, and D = time(blocker, step) - time(blocker), each the least of as many runs
as the settling leaves time for. Where the device's launch queue is shorter than the step, D is an upper bound, and the
share a lower one. Never is the share above E/P: the device waits for the host only while the host enqueues. So a
hiccup in one run does not make a host of a device that is given its work in a hundredth of the time it takes. None on
a CPU.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Callable, Optional, Protocol, Sequence, Tuple

from workloads.emit import Timing

WARMUP_AGREEMENT = 0.1
WARMUP_STEPS = 6
DISPATCH_SHARE = 0.01
SHORTEST_STEP_S = 1e-6
FEWEST_REPEATS = 3
SETTLE_S = 1.0
MOST_BLOCKS = 64
MOST_BLOCKED_RUNS = 4


class Clock(Protocol):
    """Tells the time."""

    def monotonic_s(self) -> float:
        """Return seconds on a clock that never steps and that processes share."""


class SystemClock:
    """The machine's own clock."""

    def monotonic_s(self) -> float:
        """Return CLOCK_MONOTONIC in seconds."""
        return time.monotonic()


class Queue(Protocol):
    """Something to do on the device, over and over."""

    def start(self) -> None:
        """Enqueue one step; may return before the device has done it."""

    def finish(self) -> None:
        """Wait until the device has done all steps enqueued so far."""


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return sum(values) / len(values)


@dataclass(frozen=True)
class Plan:
    """How long to measure: seconds, and how often."""

    window_s: float
    settle_s: float = SETTLE_S
    batches: int = 3
    """Into how many batches the window is divided, where a step is short enough."""
    warmup_limit_s: float = 10.0
    average: Callable[[Sequence[float]], float] = mean
    """What becomes of the times of the batches."""


@dataclass(frozen=True)
class Measurement:
    """What was measured of one step."""

    timing: Timing
    step_s: float
    """Seconds per step: the average repeat over its ``inner`` steps."""
    window_start_s: float
    window_end_s: float
    load_s: float
    """Seconds from the end of the first call to the end of the window, all of them at load."""


def measure(
    work: Queue, plan: Plan, clock: Clock, phase: Callable[[str], None], blocker: Optional[Queue] = None
) -> Measurement:
    """Return the timing of ``work``, announcing each phase; ``blocker`` is what the host share is measured behind."""
    phase("first_call")
    first_call_s = _batch_s(work, 1, clock)
    phase("warmup")
    load_start_s = clock.monotonic_s()
    synchronous_s, enqueue_s = _warm_up(work, plan, clock)
    inner, pipelined_s = _batch_length(work, synchronous_s, plan, clock)
    wanted = max(min(plan.batches, FEWEST_REPEATS), round(plan.window_s / (inner * pipelined_s)))
    warmup_s = clock.monotonic_s() - load_start_s
    phase("settle")
    settled_s = load_start_s + plan.settle_s
    device_s = _device_s(work, blocker, enqueue_s, settled_s, clock) if blocker is not None else None
    while clock.monotonic_s() < settled_s:
        left_s = settled_s - clock.monotonic_s()
        _batch_s(work, min(inner, math.ceil(left_s / max(synchronous_s, SHORTEST_STEP_S))), clock)
    phase("measure")
    window_start_s = clock.monotonic_s()
    repeats = [_batch_s(work, inner, clock) for _ in range(wanted)]
    window_end_s = clock.monotonic_s()
    median_s = median(repeats)
    timing = Timing(
        median_s=median_s,
        min_s=min(repeats),
        max_s=max(repeats),
        mad_s=median([abs(repeat - median_s) for repeat in repeats]),
        repeats=len(repeats),
        inner=inner,
        first_call_s=first_call_s,
        warmup_s=warmup_s,
        host_share=None if device_s is None else _host_share(device_s, enqueue_s, repeats[0] / inner),
    )
    return Measurement(timing, plan.average(repeats) / inner, window_start_s, window_end_s, window_end_s - load_start_s)


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _batch_s(work: Queue, steps: int, clock: Clock) -> float:
    start_s = clock.monotonic_s()
    for _ in range(steps):
        work.start()
    work.finish()
    return clock.monotonic_s() - start_s


def _warm_up(work: Queue, plan: Plan, clock: Clock) -> Tuple[float, float]:
    """Return the shorter of the last two single steps, and the shortest time that the host took to enqueue one."""
    limit_s = clock.monotonic_s() + plan.warmup_limit_s
    previous_s, enqueue_s = _single_s(work, clock)
    for _ in range(WARMUP_STEPS - 1):
        current_s, enqueued_s = _single_s(work, clock)
        enqueue_s = min(enqueue_s, enqueued_s)
        shorter_s, agree = min(previous_s, current_s), abs(current_s - previous_s) <= WARMUP_AGREEMENT * previous_s
        if agree or clock.monotonic_s() >= limit_s:
            break
        previous_s = current_s
    return shorter_s, enqueue_s


def _single_s(work: Queue, clock: Clock) -> Tuple[float, float]:
    """Return how long one step took, and how long the host took to enqueue it."""
    start_s = clock.monotonic_s()
    work.start()
    enqueue_s = clock.monotonic_s() - start_s
    work.finish()
    return clock.monotonic_s() - start_s, enqueue_s


def _batch_length(work: Queue, synchronous_s: float, plan: Plan, clock: Clock) -> Tuple[int, float]:
    """Return the steps of a batch, and how long one takes within it.

    The warm-up may have been disturbed: a step within a batch takes half of the batch's share at least, and against
    what a fetch exposes a batch grows to the length of the window at most.
    """
    share_s = plan.window_s / plan.batches
    synchronous_s = max(synchronous_s, SHORTEST_STEP_S)
    steps = round(share_s / synchronous_s)
    if steps < 2:
        return 1, synchronous_s
    batch_s = _batch_s(work, steps, clock)
    pipelined_s = (batch_s - synchronous_s) / (steps - 1)
    pipelined_s = max(min(synchronous_s, max(pipelined_s, batch_s / steps / 2)), SHORTEST_STEP_S)
    exposed_s = synchronous_s - pipelined_s
    longer = min(math.ceil(exposed_s / DISPATCH_SHARE / pipelined_s), round(plan.window_s / synchronous_s))
    return max(round(share_s / pipelined_s), longer), pipelined_s


def _device_s(work: Queue, blocker: Queue, enqueue_s: float, until_s: float, clock: Clock) -> float:
    """Return how long a step takes on the device alone, from one run behind the blocker or more, if time is left."""
    _batch_s(blocker, 1, clock)
    one_block_s = _batch_s(blocker, 1, clock)
    blocks = max(1, min(MOST_BLOCKS, math.ceil(2 * enqueue_s / one_block_s)))
    behind, alone = [], [blocks * one_block_s]
    for _ in range(MOST_BLOCKED_RUNS):
        start_s = clock.monotonic_s()
        behind.append(_behind_s(blocker, blocks, work, clock))
        alone.append(_batch_s(blocker, blocks, clock))
        now_s = clock.monotonic_s()
        if now_s + (now_s - start_s) > until_s:
            break
    return min(behind) - min(alone)


def _host_share(device_s: float, enqueue_s: float, step_s: float) -> float:
    return min(1.0, max(0.0, min(step_s - device_s, enqueue_s) / step_s))


def _behind_s(blocker: Queue, blocks: int, work: Queue, clock: Clock) -> float:
    start_s = clock.monotonic_s()
    for _ in range(blocks):
        blocker.start()
    work.start()
    work.finish()
    return clock.monotonic_s() - start_s
