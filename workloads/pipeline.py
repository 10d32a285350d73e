"""Input pipeline: what the host can feed alone, the device can eat alone, and both together.

The pipeline is the usual one of image training: read a JPEG file, decode a random crop of it, resize, flip at random,
scale, batch. *Tuned* decodes in parallel with the number of calls chosen by tf.data, in no fixed order, and prefetches;
*untuned* makes one call after the other and prefetches nothing, with tf.data's own rewriting off. The device's side is
the ResNet-50 step.

``input_bound_ratio`` = max(0, 1 - together / card): the share of the device's possible throughput that the input costs.
0 means that the device never waits. It stands on both results of host and device together, tuned and untuned.

The cold run reads every file once after its pages were dropped from the page cache; ``cached_share_before`` says how
far the kernel obeyed (a temporary folder in memory cannot be dropped).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import Callable, Dict, Iterator, List, Sequence

import tensorflow as tf

from workloads import failure, images, training
from workloads.context import Context
from workloads.emit import Result
from workloads.step import TrainingStep
from workloads.timing import Measurement, Queue, measure
from workloads.untyped import Dataset, DataType, Tensor

METHOD_VERSION = 3
WINDOW_S, CPU_WINDOW_S = 3.0, 0.5
GPU_BATCHES = 10
MADE_FILES, CPU_MADE_FILES, MOST_FILES = 512, 16, 4096
LARGEST_BATCH = 64
SMALLEST_CROP = 0.2
HOST = "/CPU:0"


class Feed:
    """The host alone: each step takes one batch from the pipeline."""

    def __init__(self, dataset: Dataset) -> None:
        with tf.device(HOST):
            self._batches = iter(dataset.repeat())

    def start(self) -> None:
        """Take a batch; returns when it is there."""
        self.next()

    def finish(self) -> None:
        """Nothing is left to wait for."""

    def next(self) -> Tensor:
        """Return the next batch of images."""
        with tf.device(HOST):
            return next(self._batches)


class FedStep:
    """Host and device together: each step trains on a batch from the pipeline."""

    def __init__(self, feed: Feed, step: TrainingStep) -> None:
        self._feed = feed
        self._step = step

    def start(self) -> None:
        """Take a batch and enqueue a training step on it."""
        self._step.feed(self._feed.next(), self._step.data[1])

    def finish(self) -> None:
        """Wait for the last training step."""
        self._step.finish()


def run(context: Context) -> Iterator[Result]:
    """Measure host, device and both; one result each.

    Raises:
        ProbeFailure: the data directory holds too few images.
    """
    number = context.number_format()
    context.phase("build")
    step = training.build(context, number, largest_batch=LARGEST_BATCH)
    with _files(context) as paths:
        if len(paths) < step.batch:
            raise failure.error(failure.TOO_FEW_IMAGES, "%d JPEG files, want at least %d" % (len(paths), step.batch))
        yield from _measure_all(context, step, paths)


def _measure_all(context: Context, step: TrainingStep, paths: Sequence[str]) -> Iterator[Result]:
    size, compute = int(step.data[0].shape[1]), step.parameters.compute

    def dataset(*, tuned: bool) -> Dataset:
        return make_dataset(paths, step.batch, size, compute, tuned=tuned)

    yield _cold(context, dataset(tuned=True), paths, step.batch)
    host: Dict[bool, float] = {}
    for tuned in (True, False):
        measured = _measure(context, Feed(dataset(tuned=tuned)), _variant("host", tuned=tuned))
        host[tuned] = step.batch / measured.step_s
        yield _result(context, measured, host[tuned], {"files": float(len(paths)), "cpus": float(cpus())})
    measured = _measure(context, step, "card")
    card = step.batch / measured.step_s
    yield _result(context, measured, card, {})
    for tuned in (True, False):
        measured = _measure(context, FedStep(Feed(dataset(tuned=tuned)), step), _variant("together", tuned=tuned))
        together = step.batch / measured.step_s
        figures = {
            "input_bound_ratio": input_bound_ratio(together, card),
            "host_images_per_second": host[tuned],
            "card_images_per_second": card,
        }
        yield _result(context, measured, together, figures)


def input_bound_ratio(together: float, card: float) -> float:
    """Return the share of the device's own rate ``card`` that is lost when it is fed, 0 to 1."""
    return max(0.0, 1.0 - together / card)


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0))


def make_dataset(paths: Sequence[str], batch: int, size: int, compute: DataType, *, tuned: bool) -> Dataset:
    """Return one pass over the files as batches of crops; it runs on the host and has its own threads."""
    parallel = tf.data.AUTOTUNE if tuned else None
    with tf.device(HOST):
        dataset = tf.data.Dataset.from_tensor_slices(list(paths))
        dataset = dataset.map(_decoder(size, compute), num_parallel_calls=parallel)
        dataset = dataset.repeat(-(-batch // len(paths))).batch(batch, drop_remainder=True)
        if tuned:
            dataset = dataset.prefetch(tf.data.AUTOTUNE)
        options = tf.data.Options()
        options.deterministic = not tuned
        options.autotune.enabled = tuned
        options.experimental_optimization.apply_default_optimizations = tuned
        options.threading.private_threadpool_size = cpus()
        return dataset.with_options(options)


def _decoder(size: int, compute: DataType) -> Callable[[Tensor], Tensor]:
    def decode(path: Tensor) -> Tensor:
        encoded = tf.io.read_file(path)
        begin, extent, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(encoded),
            tf.zeros([1, 0, 4]),
            area_range=(SMALLEST_CROP, 1.0),
            use_image_if_no_bounding_boxes=True,
        )
        window = tf.stack([begin[0], begin[1], extent[0], extent[1]])
        pixels = tf.image.decode_and_crop_jpeg(encoded, window, channels=3)
        pixels = tf.image.random_flip_left_right(tf.image.resize(pixels, [size, size]))
        return tf.cast(pixels / 127.5 - 1.0, compute)

    return decode


@contextmanager
def _files(context: Context) -> Iterator[List[str]]:
    directory = context.request.text("data_dir")
    if directory:
        yield images.find(directory, MOST_FILES)
        return
    made = tempfile.mkdtemp(prefix="heatsoak-images-")
    try:
        count = MADE_FILES if context.machine.on_gpu else CPU_MADE_FILES
        yield images.make(made, count, context.machine.seed)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _cold(context: Context, dataset: Dataset, paths: Sequence[str], batch: int) -> Result:
    context.describe(variant="host_cold")
    context.phase("cold")
    images.drop_from_cache(paths)
    cached = images.cached_share(paths)
    start_s = context.clock.monotonic_s()
    batches = sum(1 for _ in dataset)
    elapsed_s = context.clock.monotonic_s() - start_s
    figures = {"cached_share_before": cached, "files": float(len(paths)), "elapsed_s": elapsed_s}
    return context.result(METHOD_VERSION, batches * batch / elapsed_s, "images/s", figures=figures)


def _variant(side: str, *, tuned: bool) -> str:
    return "%s_%s" % (side, "tuned" if tuned else "untuned")


def _measure(context: Context, work: Queue, variant: str) -> Measurement:
    context.describe(variant=variant)
    plan = context.plan(WINDOW_S, CPU_WINDOW_S, gpu_batches=GPU_BATCHES)
    return measure(work, plan, context.clock, context.phase)


def _result(context: Context, measured: Measurement, value: float, figures: Dict[str, float]) -> Result:
    return context.result(METHOD_VERSION, value, "images/s", measurement=measured, figures=figures)
