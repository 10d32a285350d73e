"""Training throughput of a network: the probes ``resnet50`` and ``vgg16``, and the ways in which they train.

Without options that is our own step on one device. Several devices of the child share it as replicas; the option
``accumulate`` = K sums the gradients of K batches before one update; ``method`` = ``article`` trains as widely pasted
scripts do. ``steps`` = N times N further steps after the judged window, each one fetched before the next, as
tf_cnn_benchmarks does: the series ``step_s`` and ``loss``.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Dict, Iterator, List, Mapping, Optional, Tuple

import tensorflow as tf

from workloads import article, failure, precheck
from workloads.accumulation import AccumulatedStep
from workloads.context import Blocker, Context
from workloads.dtypes import NumberFormat
from workloads.emit import Result
from workloads.replication import ReplicatedStep
from workloads.resnet import ResNet
from workloads.step import MakeNetwork, TrainingStep, Work, draw
from workloads.timing import Measurement, measure
from workloads.vgg import Vgg

METHOD_VERSION = 3
WINDOW_S = 0.75
GPU_BATCHES = 2
"""Two, since the batches of one process differ by a thousandth, and the card is wanted by others."""
MOST_STEPS, MOST_BATCHES = 10_000, 1024
ARTICLE = "article"
NETWORKS: Mapping[str, MakeNetwork] = {"resnet50": ResNet, "vgg16": Vgg}
GPU_SIZE, LARGEST_GPU_BATCH = 224, {"resnet50": 256, "vgg16": 64}
CPU_SIZE, CPU_BATCH = {"resnet50": 64, "vgg16": 32}, {"resnet50": 2, "vgg16": 1}
CIFAR_SIZE, CIFAR_BATCH, CIFAR_CLASSES, CLASSES = 32, 64, 10, 1000
ITEM_MEMORY_BYTES = {"resnet50": 30e6, "vgg16": 60e6}
"""Memory a 224 px image takes in a step, per byte of its data type: seen 23e6 to 29e6 for ResNet-50."""
FIXED_MEMORY_BYTES = 3e9
MEMORY_SHARE = 0.8


def run(context: Context) -> Iterator[Result]:
    """Time the step; yields one result.

    Raises:
        ProbeFailure: the loss is not finite, or what is asked for is not offered.
    """
    number = context.number_format()
    context.phase("build")
    with ExitStack() as stack:
        work, figures, notes = _work(context, number, stack)
        start_s = context.clock.monotonic_s()
        counted = work.operations()
        if counted:
            figures["trace_s"] = context.clock.monotonic_s() - start_s
        measurement = _measure(context, work)
        context.phase("check")
        figures["loss"] = _finite(work.loss())
        figures.update(_rates(counted, measurement.step_s))
        series = _each_step(context, work)
        yield context.result(
            METHOD_VERSION,
            work.images / measurement.step_s,
            "images/s",
            measurement=measurement,
            figures=figures,
            notes=notes,
            series=series,
        )


def _work(context: Context, number: NumberFormat, stack: ExitStack) -> Tuple[Work, Dict[str, float], Dict[str, str]]:
    """Return what is to be timed, with figures and notes that tell of it."""
    by_keras, batches = _article_asked(context), count_asked(context, "accumulate", MOST_BATCHES)
    replicas = len(context.machine.devices)
    ways = [name for name, asked in ((ARTICLE, by_keras), ("accumulate", batches), ("replicas", replicas > 1)) if asked]
    if len(ways) > 1:
        raise failure.unsupported("not offered together: %s" % ", ".join(ways))
    if by_keras:
        return _article(context, number, stack)
    if replicas > 1:
        return replicated(context, number), {"replicas": float(replicas)}, {}
    step = build(context, number)
    if batches:
        summed = AccumulatedStep(step, batches)
        return summed, {"accumulate": float(batches), "accumulated_bytes": float(summed.held_bytes)}, {}
    return step, {}, {}


def build(
    context: Context, number: NumberFormat, optimizer: str = "sgd", largest_batch: Optional[int] = None
) -> TrainingStep:
    """Return the step that the request asks for, untraced; ``largest_batch`` bounds what memory would allow."""
    batch, size, classes = shape(context, number, largest_batch)
    return TrainingStep(
        NETWORKS[network_name(context)],
        number,
        batch,
        size,
        classes,
        device=context.machine.device,
        xla=context.request.mode == "xla",
        optimizer=optimizer,
        seed=context.machine.seed,
    )


def replicated(context: Context, number: NumberFormat) -> ReplicatedStep:
    """Return the step spread over all devices, each with the batch of one and images of its own.

    Raises:
        ProbeFailure: XLA is asked for.
    """
    _refuse_xla(context, "it compiles the step of one device only")
    batch, size, classes = shape(context, number)
    compute, seed = tf.as_dtype(number.tensorflow), context.machine.seed
    return ReplicatedStep(
        context.machine.devices,
        lambda: build(context, number),
        lambda index: draw(batch, size, classes, compute, context.machine.devices[index], seed + index),
    )


def _article(context: Context, number: NumberFormat, stack: ExitStack) -> Tuple[Work, Dict[str, float], Dict[str, str]]:
    context.describe(variant=ARTICLE)
    _refuse_xla(context, "the article's loop is eager")
    batch, size, classes = shape(context, number)
    step = article.ArticleStep(
        context.request.probe, number.name, batch, size, classes,
        device=context.machine.device, seed=context.machine.seed,
    )  # fmt: skip
    stack.callback(step.close)
    return step, {}, {"keras": article.keras_version()}


def _refuse_xla(context: Context, reason: str) -> None:
    if context.request.mode == "xla":
        raise failure.unsupported("no XLA here: %s" % reason)


def shape(context: Context, number: NumberFormat, largest_batch: Optional[int] = None) -> Tuple[int, int, int]:
    """Return batch, image side and count of classes, and note them for the result."""
    size = choose_size(context)
    batch = choose_batch(context, number, size, largest_batch)
    context.describe(shape="%dx%dx%dx3" % (batch, size, size))
    return batch, size, CIFAR_CLASSES if size == CIFAR_SIZE else CLASSES


def count_asked(context: Context, option: str, most: int) -> int:
    """Return a whole number that an option gives, 0 where it is absent.

    Raises:
        ProbeFailure: it is not from 0 to ``most``.
    """
    given = context.request.number(option, 0)
    if not 0 <= given <= most or given != int(given):
        raise failure.error(failure.FAILED + ":BadOption", "%s is %r, want 0 to %d" % (option, given, most))
    return int(given)


def _article_asked(context: Context) -> bool:
    method = context.request.text("method")
    if method not in ("", ARTICLE):
        raise failure.error(failure.FAILED + ":BadOption", "method is %r, want %r" % (method, ARTICLE))
    return method == ARTICLE


def _measure(context: Context, work: Work) -> Measurement:
    """Time the work; the host share only where one device does all of it."""
    machine = context.machine
    alone = len(machine.devices) == 1
    blocker = Blocker(machine.device) if machine.on_gpu and alone else None
    try:
        return measure(work, context.plan(WINDOW_S, gpu_batches=GPU_BATCHES), context.clock, context.phase, blocker)
    except tf.errors.OpError as raised:
        if machine.on_gpu and not alone:
            raise precheck.communication_failure(raised) from raised
        raise


def _each_step(context: Context, work: Work) -> Dict[str, List[float]]:
    """Return time and loss of each further step asked for, every one fetched before the next is enqueued."""
    count = count_asked(context, "steps", MOST_STEPS)
    if not count:
        return {}
    context.phase("steps")
    series: Dict[str, List[float]] = {"step_s": [], "loss": []}
    for _ in range(count):
        start_s = context.clock.monotonic_s()
        work.start()
        loss = work.loss()
        series["step_s"].append(context.clock.monotonic_s() - start_s)
        series["loss"].append(_finite(loss))
    return series


def _finite(loss: float) -> float:
    if not loss - loss == 0:
        raise failure.wrong_answer(failure.NOT_FINITE, "the loss is %r" % loss)
    return loss


def _rates(counted: Mapping[str, float], step_s: float) -> Dict[str, float]:
    """Return the work of a step and its rate; nothing where it was not counted."""
    total, forward = sum(counted.values()), counted.get("Conv2D", 0.0)
    if not forward:
        return {}
    return {
        "step_flops": total,
        "step_flops_per_second": total / step_s,
        "step_to_forward_convolution_flops_ratio": total / forward,
    }


def network_name(context: Context) -> str:
    """Return the network that the request is about: its probe, else ResNet-50."""
    return context.request.probe if context.request.probe in NETWORKS else "resnet50"


def choose_size(context: Context) -> int:
    """Return the image side in pixels: the one asked for, else 224 on a card."""
    return context.request.size or (GPU_SIZE if context.machine.on_gpu else CPU_SIZE[network_name(context)])


def choose_batch(context: Context, number: NumberFormat, size: int, largest: Optional[int] = None) -> int:
    """Return the batch: the one asked for, else the most, halved until 80 % of the free memory holds it.

    The most is ``largest`` or, where that is None, 256 for ResNet-50 and 64 for VGG16; 64 for 32 px images (CIFAR).
    """
    name = network_name(context)
    if context.request.batch:
        return context.request.batch
    if not context.machine.on_gpu:
        return CPU_BATCH[name]
    if size == CIFAR_SIZE:
        return CIFAR_BATCH
    per_image = ITEM_MEMORY_BYTES[name] * number.item_bytes * (size / GPU_SIZE) ** 2
    available = context.free_bytes() * MEMORY_SHARE - FIXED_MEMORY_BYTES
    batch = largest or LARGEST_GPU_BATCH[name]
    while batch > 1 and batch * per_image > available:
        batch //= 2
    return batch
