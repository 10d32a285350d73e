"""One training step spread over several devices: a replica of the network on each, gradients averaged.

TensorFlow's MirroredStrategy keeps the replicas' variables alike and sums the gradients, between cards by NCCL; the
step that each replica runs is our own. Each holds a batch of its own, with other images than its neighbours, and
normalises over that batch, as training on several cards usually does. All gradients are summed at once: in packs, each
waits for all that the host has enqueued by then, so that nothing overlaps (seen on two H200: packs of 4 MiB doubled the
cost). The mean is taken in the update, since a division for each gradient is one more operation for the host.
"""

from __future__ import annotations

from typing import Callable, Mapping, Sequence, Tuple

import tensorflow as tf

from workloads import flops
from workloads.step import TrainingStep
from workloads.untyped import Tensor, Variable

MakeStep = Callable[[], TrainingStep]
"""Makes the step on the first device."""
MakeBatch = Callable[[int], Tuple[Tensor, Tensor]]
"""Makes the images and labels of the replica of that number, on its device."""


class ReplicatedStep:
    """The timed work: each step trains every replica once on its own batch and updates all alike."""

    def __init__(self, devices: Sequence[str], make_step: MakeStep, make_batch: MakeBatch) -> None:
        """Make variables and data on each of the ``devices``."""
        self._count = len(devices)
        self._strategy = tf.distribute.MirroredStrategy(list(devices))
        with self._strategy.scope():
            self._step = make_step()
        drawn = [make_batch(index) for index in range(self._count)]
        self._data = tuple(self._spread([batch[part] for batch in drawn]) for part in (0, 1))
        self._function = tf.function(self._run, autograph=False)
        self._losses: Sequence[Tensor] = ()

    @property
    def images(self) -> int:
        """How many images all replicas train on in a step."""
        return self._step.images * self._count

    def start(self) -> None:
        """Enqueue one step of every replica."""
        self._losses = self._strategy.experimental_local_results(self._function(*self._data))

    def finish(self) -> None:
        """Wait for the last step of every replica."""
        self.loss()

    def loss(self) -> float:
        """Wait for the last step of every replica and return their mean loss."""
        return sum(float(loss) for loss in self._losses) / self._count

    def operations(self) -> Mapping[str, float]:
        """Return the floating point operations of all replicas together by operation type."""
        return flops.count(self._function.get_concrete_function(*self._data).graph)

    def parameters(self) -> Sequence[Sequence[Variable]]:
        """Return each variable's replica on every device."""
        return [self._strategy.experimental_local_results(each) for each in self._step.parameters.variables]

    def _spread(self, values: Sequence[Tensor]) -> Tensor:
        return self._strategy.experimental_distribute_values_from_function(
            lambda context: values[context.replica_id_in_sync_group]
        )

    def _run(self, images: Tensor, labels: Tensor) -> Tensor:
        return self._strategy.run(self._replica, args=(images, labels))

    def _replica(self, images: Tensor, labels: Tensor) -> Tensor:
        loss, gradients = self._step.gradients(images, labels)
        replica = tf.distribute.get_replica_context()
        summed = replica.all_reduce(tf.distribute.ReduceOp.SUM, gradients)
        self._step.update(summed, batches=self._count)
        return loss
