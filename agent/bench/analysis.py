"""What a result's measurements say: batch curves, knees, recommended batches, scaling, jitter, memory.

Everything is computed from what was measured; nothing is interpolated, and what was not measured is None or not there.
"""

import math
from collections.abc import Iterable, Sequence
from statistics import median
from typing import Final

import msgspec

from agent.bench.model import BenchResult, Step
from agent.bench.points import Point

NEAR_BEST: Final = 0.95
"""The share of the best throughput at which a larger batch is no longer worth its memory."""
LEAST_FREE_MEMORY: Final = 0.1
"""Share of a card's memory that a recommended batch leaves free: for evaluation, optimiser states and fragments."""
IMAGENET_SIZE: Final = 224


class Setting(msgspec.Struct, frozen=True, order=True):
    """What a batch curve is about: all but the batch."""

    network: str
    dtype: str
    mode: str
    size: int
    variant: str = ""
    memory_limit_bytes: int = 0

    def __str__(self) -> str:
        """Return it for people, as ``resnet50 bf16 xla 224 px``."""
        limit = f"limit {self.memory_limit_bytes / 2**30:g} GiB" if self.memory_limit_bytes else ""
        return " ".join(filter(None, (self.network, self.dtype, self.mode, f"{self.size} px", self.variant, limit)))


class Curve(msgspec.Struct, frozen=True):
    """Throughput over the batch on one card, batches ascending, each once; at least one point."""

    setting: Setting
    points: tuple[Point, ...]

    @property
    def best(self) -> Point:
        """The point of the highest throughput."""
        return max(self.points, key=lambda point: point.images_per_second)

    @property
    def largest(self) -> Point:
        """The point of the largest batch that was measured well."""
        return self.points[-1]


class Recommendation(msgspec.Struct, frozen=True):
    """A batch to train with, and why."""

    point: Point
    knee: Point
    why: str


class Scaling(msgspec.Struct, frozen=True):
    """One spread over several cards beside one card with the same batch a card."""

    many: Point
    alone: tuple[Point, ...]
    """The measurements on one card, at least one."""

    @property
    def one_images_per_second(self) -> float:
        """Median of the measurements on one card."""
        return median(point.images_per_second for point in self.alone)

    @property
    def speed_up(self) -> float:
        """Throughput of all cards over that of one."""
        return self.many.images_per_second / self.one_images_per_second

    @property
    def efficiency(self) -> float:
        """throughput_N / (N * throughput_1): 1 where nothing is lost."""
        return self.speed_up / self.many.replicas


class Jitter(msgspec.Struct, frozen=True):
    """How evenly steps follow one another, each step timed and waited for on its own."""

    point: Point
    steps: int
    median_s: float
    mad_s: float
    """Median absolute deviation of the steps from their median."""
    p99_over_median: float
    """The step that 99 % are no longer than, over the median."""


class ColdStart(msgspec.Struct, frozen=True):
    """The first step beside a steady one."""

    point: Point
    first_step_s: float
    steady_step_s: float

    @property
    def steps_lost(self) -> float:
        """How many steady steps pass in the time of the first one."""
        return self.first_step_s / self.steady_step_s


class MemoryUse(msgspec.Struct, frozen=True):
    """What one training step needs of a card's memory; None where it was not read."""

    step: str
    """Name of the plan's step."""
    dtype: str
    shape: str
    peak_bytes: float
    """The most that TensorFlow's allocator held."""
    held_bytes: float | None
    """What it held between steps."""
    device_used_bytes: float | None
    """What was taken of the card, by whoever: what other processes find missing."""
    optimizer_added_bytes: float | None
    """What Adam's two moments add to plain descent."""


class Saving(msgspec.Struct, frozen=True):
    """What one choice saves of memory against another."""

    name: str
    before_bytes: float
    after_bytes: float

    @property
    def share(self) -> float:
        """The share of ``before_bytes`` that is saved; negative where it costs."""
        return 1.0 - self.after_bytes / self.before_bytes


def curves(measured: Iterable[Point]) -> tuple[Curve, ...]:
    """Return the batch curves on one card without accumulation, in the order of their settings.

    Of a batch that was measured several times the middle measurement counts, the slower one of two.
    """
    found: dict[Setting, dict[int, list[Point]]] = {}
    for point in measured:
        if point.replicas == 1 and point.accumulate == 1:
            found.setdefault(setting_of(point), {}).setdefault(point.batch, []).append(point)
    return tuple(
        Curve(setting, tuple(_middle(batches[batch]) for batch in sorted(batches)))
        for setting, batches in sorted(found.items())
    )


def setting_of(point: Point) -> Setting:
    """Return the curve that a point belongs to."""
    return Setting(point.network, point.dtype, point.mode, point.size, point.variant, point.memory_limit_bytes)


def knee(curve: Curve) -> Point:
    """Return the measured point of the smallest batch that reaches 95 % of the curve's best throughput."""
    enough = NEAR_BEST * curve.best.images_per_second
    return next(point for point in curve.points if point.images_per_second >= enough)


def recommended(curve: Curve, memory_bytes: float | None) -> Recommendation:
    """Return the batch to train with: the knee, or less where that leaves under 10 % of ``memory_bytes`` free.

    ``memory_bytes`` is the card's memory, or the limit; where it or the peak is not known the knee stands.
    """
    at = knee(curve)
    if memory_bytes is None or at.peak_bytes is None:
        return Recommendation(at, at, "the knee; memory was not read")
    most_bytes = (1.0 - LEAST_FREE_MEMORY) * memory_bytes
    fitting = [p for p in curve.points if p.batch <= at.batch and (p.peak_bytes or 0.0) <= most_bytes]
    if not fitting:
        return Recommendation(curve.points[0], at, "the smallest measured: no batch leaves 10 % of memory free")
    if fitting[-1].batch == at.batch:
        return Recommendation(at, at, "the knee")
    return Recommendation(fitting[-1], at, f"below the knee at {at.batch}, which leaves under 10 % of memory free")


def memory_of(result: BenchResult) -> float | None:
    """Return how much memory a step may take in bytes: the limit, else the first card's memory; None on a CPU."""
    if result.memory_limit_bytes:
        return float(result.memory_limit_bytes)
    return result.machine.cards[0].memory_bytes if result.machine.cards else None


def images_per_second_per_gb(point: Point) -> float | None:
    """Return throughput over the allocator's peak in 1e9 bytes; None where no peak is known."""
    return point.images_per_second / (point.peak_bytes / 1e9) if point.peak_bytes else None


def images_per_second_per_watt(point: Point) -> float | None:
    """Return throughput over the mean power of all cards in the judged window; None where it was not read."""
    return point.images_per_second / (point.watts * point.replicas) if point.watts else None


def steady_step_s(point: Point) -> float:
    """Return the seconds of one steady step over all cards and accumulated batches."""
    return point.batch * point.replicas * point.accumulate / point.images_per_second


def scaling(measured: Sequence[Point]) -> tuple[Scaling, ...]:
    """Return each measurement on several cards beside one card's; left out where one card was not measured."""
    found = []
    for many in measured:
        alone = tuple(
            one
            for one in measured
            if one.replicas == 1
            and one.batch == many.batch
            and one.accumulate == many.accumulate
            and setting_of(one) == setting_of(many)
        )
        if many.replicas > 1 and alone:
            found.append(Scaling(many, alone))
    return tuple(found)


def jitter(point: Point) -> Jitter | None:
    """Return how evenly a point's single steps came; None where they were not timed one by one."""
    steps_s = sorted(point.record.result.series.get("step_s", ()))
    if not steps_s:
        return None
    middle_s = median(steps_s)
    slow_s = steps_s[math.ceil(0.99 * len(steps_s)) - 1]
    return Jitter(
        point=point,
        steps=len(steps_s),
        median_s=middle_s,
        mad_s=median(abs(step_s - middle_s) for step_s in steps_s),
        p99_over_median=slow_s / middle_s,
    )


def cold_start(point: Point) -> ColdStart | None:
    """Return a point's first step beside its steady ones; None where the first was not timed."""
    if point.first_step_s is None:
        return None
    return ColdStart(point, point.first_step_s, steady_step_s(point))


def memory_uses(result: BenchResult) -> tuple[MemoryUse, ...]:
    """Return the good measurements of training memory, in the order in which they were made."""
    return tuple(use for step in result.steps for use in _memory_uses(step))


def _memory_uses(step: Step) -> Iterable[MemoryUse]:
    for record in step.records:
        answer = record.result
        if answer.probe == "memory" and answer.status == "ok" and answer.value is not None:
            yield MemoryUse(
                step=step.name,
                dtype=answer.dtype,
                shape=answer.shape,
                peak_bytes=answer.value,
                held_bytes=answer.figures.get("held_bytes"),
                device_used_bytes=answer.figures.get("device_used_bytes"),
                optimizer_added_bytes=answer.figures.get("optimizer_added_bytes"),
            )


def savings(result: BenchResult) -> tuple[Saving, ...]:
    """Return what memory growth saves against reserving all, and mixed precision against fp32."""
    uses = {use.step: use for use in reversed(memory_uses(result))}
    growth, reserved, full = (uses.get(f"memory/{name}") for name in ("growth", "reserve-all", "fp32"))
    found = []
    if growth and reserved and growth.device_used_bytes and reserved.device_used_bytes:
        name = "growth against reserving all, of the card's memory"
        found.append(Saving(name, reserved.device_used_bytes, growth.device_used_bytes))
    halves = [uses.get(f"memory/{dtype}") for dtype in ("bf16", "fp16")]
    found += [
        Saving(f"{half.dtype} against fp32, peak at {half.shape}", full.peak_bytes, half.peak_bytes)
        for half in halves
        if half and full and half.shape == full.shape
    ]
    return tuple(found)


def usual_size(sizes: Iterable[int]) -> int:
    """Return the image side that figures are told for where nobody asks for one: 224, else the largest; 0 for none."""
    known = set(sizes)
    return IMAGENET_SIZE if IMAGENET_SIZE in known else max(known, default=0)


def _middle(same: Sequence[Point]) -> Point:
    ordered = sorted(same, key=lambda point: point.images_per_second)
    return ordered[(len(ordered) - 1) // 2]
