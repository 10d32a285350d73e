"""The arithmetic of the correctness checks, with numpy in the card's place."""

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workloads import correctness
from workloads.dtypes import FORMATS

SIDE = 256
Matrix = npt.NDArray[np.float64]


def product_of(case: correctness.ExactCase) -> Matrix:
    """Return the right product."""
    product: Matrix = case.left.astype(np.float64) @ case.right.astype(np.float64)
    return product


def mismatch_of(case: correctness.ExactCase, product: Matrix) -> correctness.Mismatch | None:
    """Check a product as the probe does, its sums in fp32."""
    narrow, weights = product.astype(np.float32), case.weights.astype(np.float32)
    return correctness.compare_sums(
        case, (narrow * weights[None, :]).sum(axis=1), (narrow * weights[:, None]).sum(axis=0)
    )


def describe(case: correctness.ExactCase, product: Matrix) -> str:
    """Return the description of a wrong product."""
    mismatch = mismatch_of(case, product)
    assert mismatch is not None
    return correctness.describe_mismatch(case, mismatch, product[mismatch.rows[: correctness.ROWS_EXAMINED]])


@pytest.fixture(scope="module")
def case() -> correctness.ExactCase:
    """Return one exact case."""
    return correctness.exact_case(SIDE, 5)


def test_a_right_product_passes(case: correctness.ExactCase) -> None:
    """No mismatch without an error."""
    assert mismatch_of(case, product_of(case)) is None


@settings(max_examples=60, deadline=None)
@given(
    row=st.integers(0, SIDE - 1),
    column=st.integers(0, SIDE - 1),
    error=st.sampled_from([1.0, -1.0, 2.0**20, math.inf, math.nan, 1e-6]),
)
def test_one_wrong_element_is_found_and_placed(row: int, column: int, error: float) -> None:
    """Whatever the place and the size of the error."""
    case = correctness.exact_case(SIDE, 5)
    product = product_of(case)
    product[row, column] += error if abs(error) >= 1 or math.isnan(error) else 0.25
    assert f"1 of {SIDE * SIDE} elements differ, in 1 rows and 1 columns; first at row {row}, column {column}" in (
        describe(case, product)
    )


def test_errors_that_cancel_in_a_plain_sum_are_found(case: correctness.ExactCase) -> None:
    """Two elements of a row, one up and one down, do not hide each other."""
    product = product_of(case)
    columns = [int(np.flatnonzero(case.weights == weight)[0]) for weight in np.unique(case.weights)[:2]]
    product[7, columns[0]] += 1
    product[7, columns[1]] -= 1
    assert describe(case, product).startswith(f"2 of {SIDE * SIDE} elements differ, in 1 rows and 2 columns")


def test_many_wrong_rows_are_counted_from_below(case: correctness.ExactCase) -> None:
    """Only some rows are computed anew; the count says so."""
    product = product_of(case)
    product[:, 3] += 1
    text = describe(case, product)
    assert text.startswith(f"at least {correctness.ROWS_EXAMINED} of")
    assert f"in {SIDE} rows and 1 columns" in text


def test_a_wrong_sum_over_right_elements_is_told(case: correctness.ExactCase) -> None:
    """An error of the summing itself is not passed over."""
    mismatch = correctness.compare_sums(case, case.row_sums + 1, case.column_sums)
    assert mismatch is not None
    assert "no element of the first" in correctness.describe_mismatch(case, mismatch, product_of(case)[:4])
    only_columns = correctness.compare_sums(case, case.row_sums, case.column_sums + 1)
    assert only_columns is not None
    assert "no row sum" in correctness.describe_mismatch(case, only_columns, np.empty((0, SIDE)))


@pytest.mark.parametrize("side", [64, 512, 1024, 4096, 8192, 16384])
def test_sums_stay_where_every_format_is_exact(side: int) -> None:
    """Eight standard deviations of a sum lie within the integers that bf16 holds."""
    density = 2 * int(128 * correctness.density(side)) / 256
    assert 8 * math.sqrt(side) * density <= 256
    assert density > 0.2


def test_inputs_are_the_same_for_the_same_seed() -> None:
    """The right answer does not depend on the run."""
    one, other = correctness.exact_case(64, 1), correctness.exact_case(64, 1)
    assert (one.left == other.left).all()
    assert (one.row_sums == other.row_sums).all()
    assert set(np.unique(one.left)) == {-1, 0, 1}
    assert not (one.left == correctness.exact_case(64, 2).left).all()


@pytest.mark.parametrize("name", ["bf16", "fp16"])
def test_the_bound_holds_for_fp32_accumulation_in_any_order(name: str) -> None:
    """Summing forwards, backwards or pairwise in fp32 and storing in the format stays within the bound."""
    number = FORMATS[name]
    generator = np.random.default_rng(3)
    digits = 8 if name == "bf16" else 11
    left = rounded(generator.standard_normal((4, 1024)), digits)
    right = rounded(generator.standard_normal((1024, 32)) / 32, digits)
    reference = left @ right
    bound = correctness.error_bound(reference, 1024, 1 / 32, number, on_gpu=True)
    forwards = np.zeros((4, 32), np.float32)
    backwards = np.zeros((4, 32), np.float32)
    for index in range(1024):
        forwards += np.outer(left[:, index], right[index]).astype(np.float32)
        backwards += np.outer(left[:, -1 - index], right[-1 - index]).astype(np.float32)
    for values in (forwards, backwards, left.astype(np.float32) @ right.astype(np.float32)):
        assert correctness.describe_excess(rounded(values.astype(np.float64), digits), reference, bound, 0) is None
    assert (bound < 0.05 + 2 * number.output_roundoff * np.abs(reference)).all()


def test_the_bound_catches_one_lost_product() -> None:
    """One term of 1024 gone wrong by its own size is beyond the bound for fp32 accumulation."""
    generator = np.random.default_rng(3)
    left, right = generator.standard_normal((1, 1024)), generator.standard_normal((1024, 1)) / 32
    reference = left @ right
    bound = correctness.error_bound(reference, 1024, 1 / 32, FORMATS["fp32"], on_gpu=True)
    text = correctness.describe_excess(reference + 1 / 32, reference, bound, 40)
    assert text is not None
    assert text.startswith("1 of 1 elements beyond the bound; first at row 40, column 0")


def test_nan_is_beyond_every_bound() -> None:
    """A comparison with NaN never passes."""
    values = np.array([[math.nan, 1.0]])
    assert correctness.describe_excess(values, np.ones((1, 2)), np.full((1, 2), 10.0), 0) is not None


def rounded(values: Matrix, digits: int) -> Matrix:
    """Return the values rounded to that many binary digits."""
    mantissa, exponent = np.frexp(values)
    result: Matrix = np.ldexp(np.round(np.ldexp(mantissa, digits)), exponent - digits)
    return result
