"""Gradient accumulation: the gradients of several batches summed before one update.

Memory holds one batch and one sum a variable, so that a card trains as with a batch that does not fit. Each batch is
one call of a traced step that adds its gradients to the sums; the update, a call of its own, divides by the number of
batches and sets the sums to 0. All batches hold the same images.
"""

from __future__ import annotations

from typing import List, Mapping

import tensorflow as tf

from workloads import flops
from workloads.step import TrainingStep
from workloads.untyped import Tensor, Variable


class AccumulatedStep:
    """The timed work: ``count`` batches, then one update."""

    def __init__(self, step: TrainingStep, count: int) -> None:
        """Make the sums beside the variables of ``step``."""
        self._step = step
        self._count = count
        with tf.device(step.device):
            self.sums: List[Variable] = [tf.Variable(tf.zeros_like(each)) for each in step.parameters.variables]
        compiled = True if step.xla else None
        self._add = tf.function(self._add_gradients, autograph=False, jit_compile=compiled)
        self._apply = tf.function(self._update, autograph=False, jit_compile=compiled)
        self._last_loss: Tensor = None

    @property
    def images(self) -> int:
        """How many images all batches of one update have."""
        return self._step.images * self._count

    @property
    def held_bytes(self) -> int:
        """Memory that the sums take."""
        return sum(each.dtype.size * each.shape.num_elements() for each in self.sums)

    def start(self) -> None:
        """Enqueue all batches and the update."""
        for _ in range(self._count):
            self._last_loss = self._add(*self._step.data)
        self._apply()

    def finish(self) -> None:
        """Wait for the last update."""
        self._last_loss.numpy()

    def loss(self) -> float:
        """Wait for the last update and return the loss of its last batch."""
        return float(self._last_loss)

    def operations(self) -> Mapping[str, float]:
        """Return the floating point operations of all batches of one update by operation type."""
        one = flops.count(self._add.get_concrete_function(*self._step.data).graph)
        return {name: amount * self._count for name, amount in one.items()}

    def _add_gradients(self, images: Tensor, labels: Tensor) -> Tensor:
        with tf.device(self._step.device):
            loss, gradients = self._step.gradients(images, labels)
            for total, gradient in zip(self.sums, gradients):  # noqa: B905 - strict is newer than Python 3.8
                tf.raw_ops.AssignAddVariableOp(resource=total.handle, value=gradient)
            return loss

    def _update(self) -> None:
        with tf.device(self._step.device):
            self._step.update([total.read_value() for total in self.sums], self._count)
            for total in self.sums:
                total.assign(tf.zeros_like(total))
