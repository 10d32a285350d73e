"""Matrix product: throughput of a chain of products, and whether a product is right.

The chain is one graph of products that each need the one before, x ← x·W, never a loop operation (whose host work
limits it). W is normal with variance 1/n, so x keeps unit variance along the chain without any further operation: the
expected square of x·W^k stays within a factor 1 + k²/n for k well below √n. The count is 2·n³ operations a product.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Iterator, List, Tuple

import numpy as np
import tensorflow as tf

from workloads import correctness, failure
from workloads.context import Blocker, Context, check_finite
from workloads.dtypes import NumberFormat
from workloads.emit import Result
from workloads.timing import Measurement, measure
from workloads.untyped import Array, Tensor

METHOD_VERSION = 3
GPU_SIDE, CPU_SIDE, LEAST_SIDE = 8192, 1024, 512
SLOWEST_PRODUCT_S = 0.25
MEMORY_SHARE = 0.5
MATRICES_HELD = 8
WINDOW_S = 1.0
RANDOM_ROWS = 8
CHAIN_AT_8192 = {"bf16": 50, "fp16": 50, "tf32": 25, "fp32": 4, "fp64": 4}
LONGEST_CHAIN = 50
CPU_CHAIN = 4


class Chain:
    """The timed work: each step is one chain of products."""

    def __init__(self, side: int, length: int, number: NumberFormat, device: str, seed: int) -> None:
        self.length = length
        with tf.device(device):
            self.left = normal(side, number, [seed, 1], 1.0)
            self.right = normal(side, number, [seed, 2], side**-0.5)

        def chain(left: Tensor, right: Tensor) -> Tensor:
            with tf.device(device):
                for _ in range(length):
                    left = tf.linalg.matmul(left, right)
                return left

        self._chain = tf.function(chain, autograph=False)
        self.last: Tensor = None

    def start(self) -> None:
        """Enqueue one chain."""
        self.last = self._chain(self.left, self.right)

    def finish(self) -> None:
        """Wait for the last chain."""
        self.last[0, 0].numpy()


def normal(side: int, number: NumberFormat, seed: List[int], deviation: float) -> Tensor:
    """Return a square matrix of normal numbers of that standard deviation, rounded to the number format."""
    wide = tf.float64 if number.item_bytes == 8 else tf.float32
    values = tf.random.stateless_normal([side, side], seed=seed, dtype=wide) * tf.cast(deviation, wide)
    return tf.cast(values, number.tensorflow)


def run(context: Context) -> Iterator[Result]:
    """Time the chain, then check a product; yields one result.

    Raises:
        ProbeFailure: a product is wrong, or the format is not offered.
    """
    number = context.number_format()
    context.phase("build")
    side = choose_side(context, number)
    context.describe(shape="%dx%dx%d" % (side, side, side))
    with ThreadPoolExecutor(max_workers=1) as worker:
        # Made while the card settles, which outlasts it, rather than while someone waits for the result.
        case = worker.submit(correctness.exact_case, side, context.machine.seed + 1)
        length = chain_length(side, number, context.machine.on_gpu)
        chain = Chain(side, length, number, context.machine.device, context.machine.seed)
        blocker = Blocker(context.machine.device) if context.machine.on_gpu else None
        measurement = measure(chain, context.plan(WINDOW_S), context.clock, context.phase, blocker)
    context.phase("check")
    start_s = context.clock.monotonic_s()
    check_finite(chain.last, "the last product")
    check_exact(context, case.result(), number)
    check_random(context, chain, side, number)
    yield _result(context, measurement, side, length, context.clock.monotonic_s() - start_s)


def _result(context: Context, measurement: Measurement, side: int, length: int, check_s: float) -> Result:
    return context.result(
        METHOD_VERSION,
        2.0 * side**3 * length / measurement.step_s,
        "flop/s",
        measurement=measurement,
        figures={"products_per_step": float(length), "check_s": check_s},
    )


def choose_side(context: Context, number: NumberFormat) -> int:
    """Return the matrix side: the one asked for, else 8192 (1024 on a CPU), halved until memory and speed allow it.

    Half of the free memory must hold 8 matrices, and a card take at most 0.25 s for a product: what a quarter of the
    side takes counts 64 times. A CPU's speed is not asked: other processes would decide the side.
    """
    if context.request.size:
        return context.request.size
    side = GPU_SIDE if context.machine.on_gpu else CPU_SIDE
    free_bytes = context.free_bytes() * MEMORY_SHARE
    while side > LEAST_SIDE and MATRICES_HELD * number.item_bytes * side**2 > free_bytes:
        side //= 2
    while context.machine.on_gpu and side > LEAST_SIDE:
        if _product_s(context, side // 4, number) * 64 <= SLOWEST_PRODUCT_S:
            break
        side //= 2
    return side


def _product_s(context: Context, side: int, number: NumberFormat) -> float:
    """Return how long one product of that side takes, the second one made."""
    with tf.device(context.machine.device):
        matrix = normal(side, number, [0, 0], 1.0)
        tf.linalg.matmul(matrix, matrix)[0, 0].numpy()
        start_s = context.clock.monotonic_s()
        tf.linalg.matmul(matrix, matrix)[0, 0].numpy()
    return context.clock.monotonic_s() - start_s


def chain_length(side: int, number: NumberFormat, on_gpu: bool) -> int:
    """Return how many products make one step: about 80 ms of them on a large card."""
    if not on_gpu:
        return CPU_CHAIN
    wanted = CHAIN_AT_8192[number.name] * (GPU_SIDE / side) ** 3
    return max(1, min(LONGEST_CHAIN, math.floor(math.sqrt(side) / 1.5), round(wanted)))


def check_exact(context: Context, case: correctness.ExactCase, number: NumberFormat) -> None:
    """Check every element of a product of -1, 0 and 1; see the correctness module.

    Raises:
        ProbeFailure: an element differs, with how many and where.
    """
    with tf.device(context.machine.device):
        left, right = (
            tf.cast(tf.cast(tf.constant(matrix), tf.float32), number.tensorflow) for matrix in (case.left, case.right)
        )
        product = tf.linalg.matmul(left, right)
        if context.request.flag("corrupt"):
            product = corrupted(product, int(context.request.number("corrupt", 0)))
        row_sums, column_sums = weighted_sums(product, case.weights)
    mismatch = correctness.compare_sums(case, row_sums, column_sums)
    if mismatch:
        rows = mismatch.rows[: correctness.ROWS_EXAMINED]
        held = np.array([widened(product[row]).numpy() for row in rows])
        raise failure.wrong_answer(failure.EXACT_MISMATCH, correctness.describe_mismatch(case, mismatch, held))


def widened(values: Tensor) -> Tensor:
    """Return the values in at least fp32, which numpy knows."""
    return tf.cast(values, tf.float32) if values.dtype.size == 2 else values


def weighted_sums(product: Tensor, weights: Array) -> Tuple[Array, Array]:
    """Return product*w and w*product, summed on the device by plain multiplication and addition."""
    wide = widened(product)
    weight = tf.constant(weights, wide.dtype)
    rows = tf.reduce_sum(wide * weight[None, :], axis=1)
    columns = tf.reduce_sum(wide * weight[:, None], axis=0)
    return rows.numpy(), columns.numpy()


def corrupted(product: Tensor, seed: int) -> Tensor:
    """Return the product with one element, its place chosen by ``seed``, off by one: what the check must find."""
    side = product.shape[0]
    place = np.random.default_rng(seed).integers(0, side, 2)
    row, column = (tf.one_hot(int(index), side, dtype=tf.float32) for index in place)
    return product + tf.cast(row[:, None] * column[None, :], product.dtype)


def check_random(context: Context, chain: Chain, side: int, number: NumberFormat) -> None:
    """Check a block of rows of the chain's first product against float64; see the correctness module.

    Raises:
        ProbeFailure: an element lies beyond its bound or is not finite, with how many and where.
    """
    rows = min(RANDOM_ROWS, side)
    first = int(np.random.default_rng(context.machine.seed).integers(0, side - rows + 1))
    with tf.device(context.machine.device):
        block = tf.linalg.matmul(chain.left, chain.right)[first : first + rows]
        check_finite(block, "a product of random numbers")
        values, left, right = (widened(part).numpy() for part in (block, chain.left[first : first + rows], chain.right))
    reference = correctness.vector_times(left.astype(np.float64), right)
    bound = correctness.error_bound(reference, side, side**-0.5, number, context.machine.on_gpu)
    excess = correctness.describe_excess(values, reference, bound, first)
    if excess:
        raise failure.wrong_answer(failure.BOUND_EXCEEDED, excess)
