"""Training step of a network: forward, backward and update, timed; the probes ``resnet50`` and ``vgg16``.

One step is the whole of training but its input: images and labels lie on the device. The gradients end in the
variables (stochastic gradient descent by one raw operation a variable), so that no part of the backward pass can be
dropped as unused. bf16 and fp16 mean that activations and gradients have that type while weights, statistics of the
batch normalisation, loss and update are fp32; fp16 scales the loss by 128.
"""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Tuple

import tensorflow as tf

from workloads import failure, flops
from workloads.context import Blocker, Context
from workloads.dtypes import NumberFormat
from workloads.emit import Result
from workloads.ops import Parameters, cross_entropy
from workloads.resnet import ResNet
from workloads.timing import Measurement, Plan, measure
from workloads.untyped import Graph, Tensor, Variable
from workloads.vgg import Vgg

Network = Callable[[Tensor], Tensor]
"""Images in, logits out."""
METHOD_VERSION = 1
LEARNING_RATE = 1e-4
FP16_LOSS_SCALE = 128.0
WINDOW_S = 0.8
MIN_REPEATS = 2
NETWORKS: Mapping[str, Callable[[Parameters, int, int], Network]] = {"resnet50": ResNet, "vgg16": Vgg}
GPU_SIZE, LARGEST_GPU_BATCH = 224, {"resnet50": 256, "vgg16": 64}
CPU_SIZE, CPU_BATCH = {"resnet50": 64, "vgg16": 32}, {"resnet50": 2, "vgg16": 1}
CIFAR_SIZE, CIFAR_BATCH, CIFAR_CLASSES, CLASSES = 32, 64, 10, 1000
ITEM_MEMORY_BYTES = {"resnet50": 30e6, "vgg16": 60e6}
"""Memory a 224 px image takes in a step, per byte of its data type: seen 23e6 to 29e6 for ResNet-50."""
FIXED_MEMORY_BYTES = 3e9
MEMORY_SHARE = 0.8


class TrainingStep:
    """The timed work: each step trains the network once on the same batch."""

    def __init__(
        self,
        network: Callable[[Parameters, int, int], Network],
        number: NumberFormat,
        batch: int,
        size: int,
        classes: int,
        *,
        device: str,
        xla: bool = False,
        optimizer: str = "sgd",
        seed: int = 0,
    ) -> None:
        """Make variables and data on ``device``; nothing is traced before :meth:`trace` or the first step."""
        compute = tf.as_dtype(number.tensorflow)
        self.batch = batch
        self._device = device
        self._scale = FP16_LOSS_SCALE if number.name == "fp16" else 1.0
        self.parameters = Parameters(device, compute, seed)
        self.network = network(self.parameters, size, classes)
        with tf.device(device):
            self._update = UPDATES[optimizer](self.parameters.variables)
            images = tf.random.stateless_normal([batch, size, size, 3], seed=[seed, 1001])
            self.images = tf.cast(images, compute)
            chosen = tf.random.stateless_uniform([batch], seed=[seed, 1002], maxval=classes, dtype=tf.int64)
            self.labels = tf.one_hot(chosen, classes, dtype=tf.float32)
        self.function = tf.function(self._step, autograph=False, jit_compile=True if xla else None)
        self.last_loss: Tensor = None

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of the forward pass."""
        return cross_entropy(self.network(images), labels)

    def gradients(self, images: Tensor, labels: Tensor) -> Tuple[Tensor, List[Tensor]]:
        """Return the loss and its gradient in each variable, times the loss scale."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self.parameters.variables)
            loss = self.loss(images, labels)
            scaled = loss * self._scale
        return loss, tape.gradient(scaled, self.parameters.variables)

    def trace(self) -> Graph:
        """Return the traced graph of one step."""
        return self.function.get_concrete_function(self.images, self.labels).graph

    def start(self) -> None:
        """Enqueue one step on the step's own batch."""
        self.feed(self.images, self.labels)

    def feed(self, images: Tensor, labels: Tensor) -> None:
        """Enqueue one step on a batch of the same shape."""
        self.last_loss = self.function(images, labels)

    def finish(self) -> None:
        """Wait for the last step."""
        self.last_loss.numpy()

    def _step(self, images: Tensor, labels: Tensor) -> Tensor:
        with tf.device(self._device):
            loss, gradients = self.gradients(images, labels)
            self._update(gradients, LEARNING_RATE, self._scale)
            return loss


class Update(Protocol):
    """Changes variables by their gradients."""

    def __call__(self, gradients: List[Tensor], rate: float, scale: float) -> None:
        """Enqueue the update by gradients that were scaled."""


class Descent:
    """Stochastic gradient descent, one raw operation a variable."""

    def __init__(self, variables: List[Variable]) -> None:
        self._variables = variables

    def __call__(self, gradients: List[Tensor], rate: float, scale: float) -> None:
        """Enqueue the update by gradients that were scaled."""
        step = tf.constant(rate / scale, tf.float32)
        for variable, gradient in zip(self._variables, gradients):  # noqa: B905 - strict is newer than Python 3.8
            tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=step, delta=gradient)


class Adam:
    """Adam, one raw operation a variable; holds two moments for each."""

    def __init__(self, variables: List[Variable]) -> None:
        self._variables = variables
        self._first = [tf.Variable(tf.zeros_like(variable)) for variable in variables]
        self._second = [tf.Variable(tf.zeros_like(variable)) for variable in variables]

    def __call__(self, gradients: List[Tensor], rate: float, scale: float) -> None:
        """Enqueue the update by gradients that were scaled."""
        number: Dict[str, Tensor] = {
            name: tf.constant(value, tf.float32)
            for name, value in {"lr": rate, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-7}.items()
        }
        lists = (self._variables, self._first, self._second, gradients)
        for variable, first, second, gradient in zip(*lists):  # noqa: B905 - strict is newer than Python 3.8
            tf.raw_ops.ResourceApplyAdam(
                var=variable.handle,
                m=first.handle,
                v=second.handle,
                beta1_power=number["beta1"],
                beta2_power=number["beta2"],
                grad=gradient / scale,
                **number,
            )


UPDATES: Mapping[str, Callable[[List[Variable]], Update]] = {"sgd": Descent, "adam": Adam}


def run(context: Context) -> Iterator[Result]:
    """Time the step; yields one result.

    Raises:
        ProbeFailure: the loss is not finite, or the format is not offered.
    """
    number = context.number_format()
    context.phase("build")
    step = build(context, number)
    start_s = context.clock.monotonic_s()
    graph = step.trace()
    trace_s = context.clock.monotonic_s() - start_s
    blocker = Blocker(context.machine.device) if context.machine.on_gpu else None
    measurement = measure(step, _plan(context), context.clock, context.phase, blocker)
    context.phase("check")
    yield _result(context, step, measurement, flops.count(graph), trace_s)


def build(
    context: Context, number: NumberFormat, optimizer: str = "sgd", largest_batch: Optional[int] = None
) -> TrainingStep:
    """Return the step that the request asks for, untraced; ``largest_batch`` bounds what memory would allow."""
    name = network_name(context)
    size = choose_size(context)
    batch = choose_batch(context, number, size, largest_batch)
    context.describe(shape="%dx%dx%dx3" % (batch, size, size))
    return TrainingStep(
        NETWORKS[name],
        number,
        batch,
        size,
        CIFAR_CLASSES if size == CIFAR_SIZE else CLASSES,
        device=context.machine.device,
        xla=context.request.mode == "xla",
        optimizer=optimizer,
        seed=context.machine.seed,
    )


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


def _plan(context: Context) -> Plan:
    plan = context.plan(WINDOW_S)
    return Plan(plan.window_s, plan.settle_s, MIN_REPEATS, plan.min_batch_s, plan.warmup_limit_s)


def _result(
    context: Context, step: TrainingStep, measurement: Measurement, work: Mapping[str, float], trace_s: float
) -> Result:
    loss = float(step.last_loss)
    if not loss - loss == 0:
        raise failure.wrong_answer(failure.NOT_FINITE, "the loss is %r" % loss)
    forward = work.get("Conv2D", 0.0)
    total = sum(work.values())
    return context.result(
        METHOD_VERSION,
        step.batch / measurement.step_s,
        "images/s",
        measurement=measurement,
        figures={
            "loss": loss,
            "trace_s": trace_s,
            "step_flops": total,
            "step_flops_per_second": total / measurement.step_s,
            "step_to_forward_convolution_flops_ratio": total / forward,
        },
    )
