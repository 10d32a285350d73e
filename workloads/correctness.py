"""Whether a matrix product is right: exact integers, and random numbers within a derived bound.

**Exact pass.** A and B hold -1, 0 and 1 at a density for which every sum of products, in any order, stays within
±256 by more than 8 standard deviations: integers that bf16, fp16 and everything larger hold exactly, so that each
element has one right value whatever the algorithm, the order of summation or the accumulator's width. The product C is
checked without computing it again (Freivalds): with a weight vector w of non-zero integers up to ±7, C·w must equal
A·(B·w) and wᵀ·C must equal (wᵀ·A)·B. The device sums C in fp32, where these sums are exact (256 · 8192 · 7 < 2^24); the
host computes the other side in float64, exact as well. One wrong element breaks exactly one row sum and one column sum,
and no single wrong row escapes unless its errors cancel under the weights. Rows that break are computed anew on the
host, element by element, which gives the number and the place of the wrong elements.

**Random pass.** A and B hold normal numbers as in the timed run, already rounded to the data type. Let s be the
standard deviation of one product of two inputs and k the length of a sum. Any partial sum, in any order, is below
M = 8·s·√k (the chance of the contrary is 1e-15 an element). Each of the k additions errs by at most u_acc·M, so the
accumulated value errs by at most k·u_acc·M; inputs that are rounded on the way (tf32) change each product by a factor
1 + ε with |ε| ≤ 2·u_in, hence the sum by at most 2·u_in·(|c| + M); storing the result rounds it by u_out of its
size. The bound of an element c is the sum of the three. u_acc is 2^-23 for fp32 accumulation on units that truncate.
A CPU may accumulate in the data type itself: there u_acc is the larger of the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import List, Optional

import numpy as np

from workloads.dtypes import NumberFormat
from workloads.untyped import Array

LARGEST_EXACT = 256
DEVIATIONS = 8.2
LARGEST_WEIGHT = 7
BLOCK = 256
ROWS_EXAMINED = 16


def density(side: int) -> float:
    """Return the share of inputs that are not 0 for which sums over ``side`` products stay within ±256."""
    return min(2 / 3, LARGEST_EXACT / (DEVIATIONS * math.sqrt(side)))


def ternary(generator: np.random.Generator, side: int) -> Array:
    """Return a square matrix of -1, 0 and 1 in int8, at the density that ``side`` allows."""
    each = int(128 * density(side))
    table = np.zeros(256, np.int8)
    table[:each], table[each : 2 * each] = 1, -1
    return table[np.frombuffer(generator.bytes(side * side), np.uint8).reshape(side, side)]


def weights(generator: np.random.Generator, side: int) -> Array:
    """Return ``side`` non-zero integers up to ±7, as float64."""
    return generator.integers(1, LARGEST_WEIGHT + 1, side) * generator.choice(np.array([-1.0, 1.0]), side)


def times_vector(matrix: Array, vector: Array) -> Array:
    """Return matrix·vector in float64, a block of rows at a time."""
    return np.concatenate(
        [matrix[row : row + BLOCK].astype(np.float64) @ vector for row in range(0, len(matrix), BLOCK)]
    )


def vector_times(vector: Array, matrix: Array) -> Array:
    """Return vectorᵀ·matrix in float64, a block of rows at a time; ``vector`` may be several rows of them."""
    total = np.zeros((*vector.shape[:-1], matrix.shape[1]))
    for row in range(0, len(matrix), BLOCK):
        total += vector[..., row : row + BLOCK] @ matrix[row : row + BLOCK].astype(np.float64)
    return total


@dataclass(frozen=True)
class ExactCase:
    """Inputs of the exact pass and the sums that a right product has."""

    left: Array
    right: Array
    weights: Array
    row_sums: Array
    column_sums: Array


def exact_case(side: int, seed: int) -> ExactCase:
    """Return the exact pass for products of ``side`` by ``side`` matrices."""
    generator = np.random.Generator(np.random.PCG64(seed))
    left, right = ternary(generator, side), ternary(generator, side)
    weight = weights(generator, side)
    return ExactCase(
        left=left,
        right=right,
        weights=weight,
        row_sums=times_vector(left, times_vector(right, weight)),
        column_sums=vector_times(vector_times(weight, left), right),
    )


@dataclass(frozen=True)
class Mismatch:
    """What is wrong with a product."""

    rows: List[int]
    columns: List[int]
    """Rows and columns whose weighted sums are wrong."""


def compare_sums(case: ExactCase, row_sums: Array, column_sums: Array) -> Optional[Mismatch]:
    """Return which rows and columns of a product are wrong, None where its weighted sums are right."""
    rows = np.flatnonzero(~(np.asarray(row_sums, np.float64) == case.row_sums))
    columns = np.flatnonzero(~(np.asarray(column_sums, np.float64) == case.column_sums))
    return Mismatch(rows.tolist(), columns.tolist()) if len(rows) or len(columns) else None


def describe_mismatch(case: ExactCase, mismatch: Mismatch, rows: Array) -> str:
    """Return how many elements differ and where, given the product's first wrong rows as ``rows``."""
    examined = mismatch.rows[: len(rows)]
    if not examined:
        return "no row sum but %d column sums differ, first column %d" % (
            len(mismatch.columns),
            mismatch.columns[0],
        )
    right = vector_times(case.left[examined].astype(np.float64), case.right)
    wrong = np.argwhere(~(np.asarray(rows, np.float64) == right))
    if not len(wrong):
        return "%d row sums differ but no element of the first %d rows does" % (len(mismatch.rows), len(rows))
    row, column = wrong[0]
    return "%s%d of %d elements differ, in %d rows and %d columns; first at row %d, column %d: %g instead of %g" % (
        "at least " if len(mismatch.rows) > len(examined) else "",
        len(wrong),
        len(case.left) * case.right.shape[1],
        len(mismatch.rows),
        len(mismatch.columns),
        examined[row],
        column,
        rows[row][column],
        right[row][column],
    )


def error_bound(reference: Array, side: int, sigma: float, number: NumberFormat, on_gpu: bool) -> Array:
    """Return the largest error that each element of a random product may have.

    ``reference`` holds the float64 values, ``sigma`` is the standard deviation of one product of two inputs.
    """
    accumulator = number.accumulator_roundoff if on_gpu else max(number.accumulator_roundoff, number.output_roundoff)
    partial = 8 * sigma * math.sqrt(side)
    size = np.abs(reference)
    accumulated = side * accumulator * partial + 2 * number.input_roundoff * (size + partial)
    return accumulated + number.output_roundoff * (size + accumulated)


def describe_excess(values: Array, reference: Array, bound: Array, first_row: int) -> Optional[str]:
    """Return how many elements lie beyond their bound and where, None where none does."""
    error = np.abs(values - reference)
    beyond = np.argwhere(~(error <= bound))
    if not len(beyond):
        return None
    row, column = beyond[0]
    return "%d of %d elements beyond the bound; first at row %d, column %d: %g instead of %g ± %.2g" % (
        len(beyond),
        values.size,
        first_row + row,
        column,
        values[row, column],
        reference[row, column],
        bound[row, column],
    )
