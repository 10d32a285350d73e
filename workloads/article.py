"""The training step as widely pasted scripts write it: a Keras model, an eager loop.

``tf.keras.applications`` gives the network, without weights; each step calls the model under a GradientTape, takes the
gradients and hands them to Keras's SGD, outside any graph. Number formats are Keras's own policies (``mixed_bfloat16``,
``mixed_float16`` without a loss scale), devices are TensorFlow's choice, as such scripts leave them.

Its figure is lower than our own step's for two reasons that say nothing about the card: the host dispatches every
operation of every step (the host share tells how long the card waits), and Keras 3 normalises batches by separate
operations where TensorFlow has one fused kernel.

This is the one place that imports Keras; the child lets it in only where a request names this method.
"""

from __future__ import annotations

from typing import Callable, Mapping

import tensorflow as tf

from workloads import failure
from workloads.step import LEARNING_RATE
from workloads.untyped import Model, Tensor

POLICIES: Mapping[str, str] = {
    "bf16": "mixed_bfloat16",
    "fp16": "mixed_float16",
    "tf32": "float32",
    "fp32": "float32",
    "fp64": "float64",
}
MODELS: Mapping[str, str] = {"resnet50": "ResNet50", "vgg16": "VGG16"}


class ArticleStep:
    """The timed work: each step trains the Keras model once on the same batch."""

    def __init__(self, name: str, dtype: str, batch: int, size: int, classes: int, *, device: str, seed: int) -> None:
        """Make the model and its data where TensorFlow puts them, which must be ``device``.

        Raises:
            ProbeFailure: the model lies elsewhere.
        """
        tf.config.set_soft_device_placement(True)
        tf.keras.mixed_precision.set_global_policy(POLICIES[dtype])
        make: Callable[..., Model] = getattr(tf.keras.applications, MODELS[name])
        self._model = make(weights=None, input_shape=(size, size, 3), classes=classes)
        self._loss_of = tf.keras.losses.SparseCategoricalCrossentropy()
        self._optimizer = tf.keras.optimizers.SGD(LEARNING_RATE)
        self._images = tf.random.stateless_normal([batch, size, size, 3], seed=[seed, 1001])
        self._labels = tf.random.stateless_uniform([batch], seed=[seed, 1002], maxval=classes, dtype=tf.int64)
        self._batch = batch
        self._last_loss: Tensor = None
        self._check_device(device)

    @property
    def images(self) -> int:
        """How many images a step trains on."""
        return self._batch

    def start(self) -> None:
        """Train on the batch; the host is done when it has dispatched every operation."""
        with tf.GradientTape() as tape:
            loss = self._loss_of(self._labels, self._model(self._images, training=True))
        variables = self._model.trainable_variables
        gradients = tape.gradient(loss, variables)
        self._optimizer.apply_gradients(zip(gradients, variables))  # noqa: B905 - strict is newer than Python 3.8
        self._last_loss = loss

    def finish(self) -> None:
        """Wait for the last step."""
        self._last_loss.numpy()

    def loss(self) -> float:
        """Wait for the last step and return its loss."""
        return float(self._last_loss)

    def operations(self) -> Mapping[str, float]:
        """Return nothing: no graph is there to count in."""
        return {}

    def close(self) -> None:
        """Leave TensorFlow and Keras as the other requests want them."""
        tf.keras.mixed_precision.set_global_policy("float32")
        tf.keras.backend.clear_session()
        tf.config.set_soft_device_placement(False)

    def _check_device(self, device: str) -> None:
        for variable in self._model.trainable_variables:
            held = getattr(variable, "value", variable)
            place = str((held() if callable(held) else held).device)
            if not place.endswith(device[1:]):
                raise failure.error(
                    failure.RAN_ON_CPU, "Keras put a variable on %s, not on %s" % (place or "no device", device)
                )


def keras_version() -> str:
    """Return the version of the Keras that TensorFlow brings."""
    return str(getattr(tf.keras, "__version__", ""))
