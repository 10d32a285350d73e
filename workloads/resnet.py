"""ResNet-50 (version 1.5: the stride sits in the 3-pixel convolution)."""

from __future__ import annotations

from typing import Optional, Sequence

import tensorflow as tf

from workloads.ops import BatchNorm, Convolution, Dense, Parameters, max_pool, relu
from workloads.untyped import Tensor

RESNET50_BLOCKS = (3, 4, 6, 3)
EXPANSION = 4


class Bottleneck:
    """Convolutions of 1, 3 and 1 pixels a side, beside a shortcut."""

    def __init__(self, parameters: Parameters, inputs: int, width: int, stride: int) -> None:
        outputs = width * EXPANSION
        self._reduce = Convolution(parameters, 1, inputs, width)
        self._reduce_norm = BatchNorm(parameters, width)
        self._spatial = Convolution(parameters, 3, width, width, stride)
        self._spatial_norm = BatchNorm(parameters, width)
        self._expand = Convolution(parameters, 1, width, outputs)
        self._expand_norm = BatchNorm(parameters, outputs)
        self._shortcut: Optional[Convolution] = None
        if inputs != outputs or stride != 1:
            self._shortcut = Convolution(parameters, 1, inputs, outputs, stride)
            self._shortcut_norm = BatchNorm(parameters, outputs)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the block's output."""
        shortcut = self._shortcut_norm(self._shortcut(images)) if self._shortcut else images
        inner = relu(self._reduce_norm(self._reduce(images)))
        inner = relu(self._spatial_norm(self._spatial(inner)))
        return relu(self._expand_norm(self._expand(inner)) + shortcut)


class ResNet:
    """Images in, logits out."""

    def __init__(
        self,
        parameters: Parameters,
        size: int,
        classes: int,
        blocks: Sequence[int] = RESNET50_BLOCKS,
        width: int = 64,
    ) -> None:
        """Make the variables; any image ``size`` will do, since the last average spans the whole image."""
        del size
        self._stem = Convolution(parameters, 7, 3, width, 2)
        self._stem_norm = BatchNorm(parameters, width)
        self._blocks = []
        inputs = width
        for stage, count in enumerate(blocks):
            for block in range(count):
                stride = 2 if stage > 0 and block == 0 else 1
                self._blocks.append(Bottleneck(parameters, inputs, width << stage, stride))
                inputs = (width << stage) * EXPANSION
        self._head = Dense(parameters, inputs, classes)

    def __call__(self, images: Tensor) -> Tensor:
        """Return the logits."""
        features = max_pool(relu(self._stem_norm(self._stem(images))), 3, 2)
        for block in self._blocks:
            features = block(features)
        return self._head(tf.reduce_mean(features, axis=[1, 2]))
