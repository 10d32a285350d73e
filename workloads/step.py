"""One training step of a network: forward, backward and update, on one device.

One step is the whole of training but its input: images and labels lie on the device. The gradients end in the
variables (stochastic gradient descent by one raw operation a variable), so that no part of the backward pass can be
dropped as unused. bf16 and fp16 mean that activations and gradients have that type while weights, statistics of the
batch normalisation, loss and update are fp32; fp16 scales the loss by 128.
"""

from __future__ import annotations

from typing import Callable, Dict, List, Mapping, Protocol, Tuple

import tensorflow as tf

from workloads import flops
from workloads.dtypes import NumberFormat
from workloads.ops import Parameters, cross_entropy
from workloads.timing import Queue
from workloads.untyped import DataType, Graph, Tensor, Variable

LEARNING_RATE = 1e-4
FP16_LOSS_SCALE = 128.0

Network = Callable[[Tensor], Tensor]
"""Images in, logits out."""
MakeNetwork = Callable[[Parameters, int, int], Network]
"""Makes a network's variables for an image side and a count of classes."""


class Work(Queue, Protocol):
    """A way to train: what is timed, and what it tells of itself."""

    @property
    def images(self) -> int:
        """How many images one start trains on, over all devices."""

    def loss(self) -> float:
        """Wait for the last step and return its loss."""

    def operations(self) -> Mapping[str, float]:
        """Return the floating point operations of one start by operation type; empty where they are not counted."""


class TrainingStep:
    """The timed work: each step trains the network once on the same batch."""

    def __init__(
        self,
        network: MakeNetwork,
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
        self.xla = xla
        self.device = device
        self._scale = FP16_LOSS_SCALE if number.name == "fp16" else 1.0
        self.parameters = Parameters(device, compute, seed)
        self.network = network(self.parameters, size, classes)
        with tf.device(device):
            self._update = UPDATES[optimizer](self.parameters.variables)
        self.data = draw(batch, size, classes, compute, device, seed)
        self.function = tf.function(self._step, autograph=False, jit_compile=True if xla else None)
        self.last_loss: Tensor = None

    @property
    def images(self) -> int:
        """How many images one start trains on."""
        return self.batch

    def loss_of(self, images: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of the forward pass."""
        return cross_entropy(self.network(images), labels)

    def gradients(self, images: Tensor, labels: Tensor) -> Tuple[Tensor, List[Tensor]]:
        """Return the loss and its gradient in each variable, times the loss scale."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(self.parameters.variables)
            loss = self.loss_of(images, labels)
            scaled = loss * self._scale
        return loss, tape.gradient(scaled, self.parameters.variables)

    def update(self, gradients: List[Tensor], batches: int = 1) -> None:
        """Change the variables by gradients that :meth:`gradients` gave, or by their sum over ``batches``."""
        self._update(gradients, LEARNING_RATE, self._scale * batches)

    def trace(self) -> Graph:
        """Return the traced graph of one step."""
        return self.function.get_concrete_function(*self.data).graph

    def operations(self) -> Mapping[str, float]:
        """Return the floating point operations of one step by operation type."""
        return flops.count(self.trace())

    def start(self) -> None:
        """Enqueue one step on the step's own batch."""
        self.feed(*self.data)

    def feed(self, images: Tensor, labels: Tensor) -> None:
        """Enqueue one step on a batch of the same shape."""
        self.last_loss = self.function(images, labels)

    def finish(self) -> None:
        """Wait for the last step."""
        self.last_loss.numpy()

    def loss(self) -> float:
        """Wait for the last step and return its loss."""
        return float(self.last_loss)

    def _step(self, images: Tensor, labels: Tensor) -> Tensor:
        with tf.device(self.device):
            loss, gradients = self.gradients(images, labels)
            self.update(gradients)
            return loss


def draw(batch: int, size: int, classes: int, compute: DataType, device: str, seed: int) -> Tuple[Tensor, Tensor]:
    """Return random images and one-hot labels on ``device``."""
    with tf.device(device):
        images = tf.cast(tf.random.stateless_normal([batch, size, size, 3], seed=[seed, 1001]), compute)
        chosen = tf.random.stateless_uniform([batch], seed=[seed, 1002], maxval=classes, dtype=tf.int64)
        return images, tf.one_hot(chosen, classes, dtype=tf.float32)


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
