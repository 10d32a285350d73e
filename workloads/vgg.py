"""VGG16 (configuration D, without dropout)."""

from __future__ import annotations

from typing import Sequence

import tensorflow as tf

from workloads.ops import Bias, Convolution, Dense, Parameters, max_pool, relu
from workloads.untyped import Tensor

VGG16_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
HIDDEN = 4096


class Vgg:
    """Images in, logits out."""

    def __init__(
        self,
        parameters: Parameters,
        size: int,
        classes: int,
        stages: Sequence[Sequence[int]] = VGG16_STAGES,
        hidden: int = HIDDEN,
    ) -> None:
        """Make the variables for images of ``size`` pixels a side, which each stage halves."""
        self._stages = []
        inputs = 3
        for channels, count in stages:
            layers = []
            for _ in range(count):
                layers.append((Convolution(parameters, 3, inputs, channels), Bias(parameters, channels)))
                inputs = channels
            self._stages.append(layers)
            size = -(-size // 2)
        self._features = size * size * inputs
        self._dense = (Dense(parameters, self._features, hidden), Dense(parameters, hidden, hidden))
        self._head = Dense(parameters, hidden, classes)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the logits."""
        for layers in self._stages:
            for convolution, bias in layers:
                images = relu(bias(convolution(images)))
            images = max_pool(images, 2, 2)
        features = tf.reshape(images, [-1, self._features])
        for dense in self._dense:
            features = relu(dense(features))
        return self._head(features)
