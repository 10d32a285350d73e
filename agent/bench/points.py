"""The good training measurements of a result, each as one flat row."""

from collections.abc import Iterator

import msgspec

from agent.bench.model import BenchResult
from agent.model.probe import ProbeRecord

NETWORKS = ("resnet50", "vgg16")


class Point(msgspec.Struct, frozen=True):
    """One good measurement of a training step."""

    network: str
    dtype: str
    mode: str
    size: int
    """Image side in pixels."""
    batch: int
    """Images a step and card."""
    variant: str
    """Empty for our own step, ``article`` for the Keras model in an eager loop."""
    replicas: int
    """Cards that the step is spread over."""
    accumulate: int
    """Batches whose gradients are summed before one update."""
    images_per_second: float
    """Of all cards together."""
    memory_limit_bytes: int
    record: ProbeRecord

    @property
    def peak_bytes(self) -> float | None:
        """The most that TensorFlow's allocator held on the first card, None where it keeps no count."""
        return self.record.result.allocator_peak_bytes

    @property
    def watts(self) -> float | None:
        """Mean power of the first card in the judged window, None where it was not read."""
        return self.record.attribution.power_mean_watts if self.record.attribution else None

    @property
    def joules_per_image(self) -> float | None:
        """Energy for one image on one card, None where power was not read."""
        return None if self.watts is None else self.watts * self.replicas / self.images_per_second

    @property
    def first_step_s(self) -> float | None:
        """Seconds of the first step: tracing, choice of algorithms, compilation, and the step itself."""
        timing = self.record.result.timing
        return timing.first_call_s + self.record.result.figures.get("trace_s", 0.0) if timing else None


def points(result: BenchResult) -> tuple[Point, ...]:
    """Return the good training measurements in the order in which they were made."""
    return tuple(_points(result))


def _points(result: BenchResult) -> Iterator[Point]:
    for step in result.steps:
        for record in step.records:
            point = point_of(record, step.memory_limit_bytes)
            if point is not None:
                yield point


def point_of(record: ProbeRecord, memory_limit_bytes: int = 0) -> Point | None:
    """Return a record as a point; None where it is no good training measurement."""
    answer = record.result
    if answer.probe not in NETWORKS or answer.status != "ok" or answer.value is None:
        return None
    batch, size = (int(side) for side in answer.shape.split("x")[:2])
    return Point(
        network=answer.probe,
        dtype=answer.dtype,
        mode=answer.mode,
        size=size,
        batch=batch,
        variant=answer.variant,
        replicas=int(answer.figures.get("replicas", 1)),
        accumulate=int(answer.figures.get("accumulate", 1)),
        images_per_second=answer.value,
        memory_limit_bytes=memory_limit_bytes,
        record=record,
    )
