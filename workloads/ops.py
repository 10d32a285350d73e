"""Layers of the probe networks as raw TensorFlow operations, so that every version builds the same graph.

Tensors are NHWC, the layout in which tensor cores read convolutions. Weights are held in fp32 and cast to the compute
type in each step, as mixed precision training does; batch normalisation is the fused operation in training mode, with
statistics in fp32 (running averages, which only inference needs, are not kept).
"""

from __future__ import annotations

import math
from typing import Dict, List, Sequence

import tensorflow as tf

from workloads.untyped import DataType, Tensor, Variable

EPSILON = 1e-5


class Parameters:
    """Makes and holds a network's trainable variables, on one device, in the order they are made."""

    def __init__(self, device: str, compute: DataType, seed: int) -> None:
        """Take the device's name, the type to compute in, and the seed of the initial values."""
        self.variables: List[Variable] = []
        self.compute = compute
        self._device = device
        self._seed = seed

    def normal(self, shape: Sequence[int], fan_in: int) -> Variable:
        """Return a new variable of normal numbers with variance 2/fan_in."""
        with tf.device(self._device):
            values = tf.random.stateless_normal(shape, seed=[self._seed, len(self.variables)])
            return self._hold(values * math.sqrt(2.0 / fan_in))

    def constant(self, count: int, value: float) -> Variable:
        """Return a new vector variable of equal numbers."""
        with tf.device(self._device):
            return self._hold(tf.fill([count], value))

    def cast(self, variable: Variable) -> Tensor:
        """Return the variable's value in the compute type."""
        value = variable.read_value()
        return value if value.dtype == self.compute else tf.cast(value, self.compute)

    def _hold(self, values: Tensor) -> Variable:
        variable = tf.Variable(values)
        self.variables.append(variable)
        return variable


class Convolution:
    """A convolution without bias, padded alike on all sides so that stride 1 keeps the image's size.

    The operation's own ``SAME`` pads one side more at stride 2, which costs a copy of the images on a GPU.
    """

    def __init__(self, parameters: Parameters, kernel: int, inputs: int, outputs: int, stride: int = 1) -> None:
        self._parameters = parameters
        self._filter = parameters.normal([kernel, kernel, inputs, outputs], kernel * kernel * inputs)
        self._stride = stride
        side = (kernel - 1) // 2
        self._padding: Dict[str, object] = {"padding": "SAME"}
        if stride > 1:
            self._padding = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, side, side, side, side, 0, 0]}

    def __call__(self, images: Tensor) -> Tensor:
        """Return the convolved images."""
        return tf.raw_ops.Conv2D(
            input=images,
            filter=self._parameters.cast(self._filter),
            strides=[1, self._stride, self._stride, 1],
            data_format="NHWC",
            **self._padding,
        )


class BatchNorm:
    """Fused batch normalisation in training mode."""

    def __init__(self, parameters: Parameters, channels: int) -> None:
        self._scale = parameters.constant(channels, 1.0)
        self._offset = parameters.constant(channels, 0.0)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the images normalised over the batch."""
        return tf.raw_ops.FusedBatchNormV3(
            x=images,
            scale=self._scale.read_value(),
            offset=self._offset.read_value(),
            mean=tf.zeros([0]),
            variance=tf.zeros([0]),
            epsilon=EPSILON,
            data_format="NHWC",
            is_training=True,
        )[0]


class Bias:
    """A bias per channel."""

    def __init__(self, parameters: Parameters, channels: int) -> None:
        self._parameters = parameters
        self._bias = parameters.constant(channels, 0.0)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the images with the bias added."""
        return tf.raw_ops.BiasAdd(value=images, bias=self._parameters.cast(self._bias))


class Dense:
    """A fully connected layer with bias."""

    def __init__(self, parameters: Parameters, inputs: int, outputs: int) -> None:
        self._parameters = parameters
        self._weights = parameters.normal([inputs, outputs], inputs)
        self._bias = Bias(parameters, outputs)

    def __call__(self, features: Tensor) -> Tensor:
        """Return the layer's outputs."""
        return self._bias(tf.raw_ops.MatMul(a=features, b=self._parameters.cast(self._weights)))


def relu(values: Tensor) -> Tensor:
    """Return the values, negative ones as 0."""
    return tf.raw_ops.Relu(features=values)


def max_pool(images: Tensor, window: int, stride: int) -> Tensor:
    """Return the largest value of each window."""
    return tf.raw_ops.MaxPool(
        input=images, ksize=[1, window, window, 1], strides=[1, stride, stride, 1], padding="SAME", data_format="NHWC"
    )


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross entropy, in fp32, of logits against one-hot ``labels``."""
    losses, _ = tf.raw_ops.SoftmaxCrossEntropyWithLogits(features=tf.cast(logits, tf.float32), labels=labels)
    return tf.reduce_mean(losses)
