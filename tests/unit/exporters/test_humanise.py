"""Numbers, sizes and times as people read them."""

import pytest

from exporters import humanise


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.00"),
        (0.1234, "0.123"),
        (1.5, "1.50"),
        (12.34, "12.3"),
        (659.4, "659"),
        (2051.2, "2,051"),
        (-12.34, "-12.3"),
    ],
)
def test_numbers_have_three_digits_or_more(value: float, text: str) -> None:
    """Enough to compare, few enough to read."""
    assert humanise.number(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (659.4e12, "flop/s", ("659", "TFLOP/s")),
        (71.3e9, "flop/s", ("71.3", "GFLOP/s")),
        (12.0, "flop/s", ("12.0", "FLOP/s")),
        (2051.0, "images/s", ("2,051", "images/s")),
        (4.1e12, "byte/s", ("4.10", "TB/s")),
        (140.0 * 2**30, "byte", ("140", "GiB")),
        (512.0, "byte", ("512", "B")),
    ],
)
def test_a_probe_value_has_the_prefix_that_fits(value: float, unit: str, shown: tuple[str, str]) -> None:
    """Operations and rates in decimal prefixes, sizes in binary ones, images in none."""
    assert humanise.quantity(value, unit) == shown


def test_a_share_of_memory_is_told_in_the_unit_of_the_whole() -> None:
    """Both numbers can be compared at a glance."""
    assert humanise.share_of_size(0.6 * 2**30, 140 * 2**30) == ("0.6", "140", "GiB")
    assert humanise.share_of_size(121 * 2**30, 140 * 2**30) == ("121", "140", "GiB")
    assert humanise.share_of_size(3, 7) == ("3.0", "7.00", "B")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0, "0 s"),
        (95, "95 s"),
        (120, "2 min"),
        (1260, "21 min"),
        (7500, "2 h"),
        (86400, "24 h"),
        (5e5, "6 d"),
    ],
)
def test_a_span_is_told_in_the_largest_unit_of_which_it_has_two(seconds: float, text: str) -> None:
    """Rounding never hides more than half."""
    assert humanise.span(seconds) == text


def test_a_share_is_told_in_percent() -> None:
    """Whole percents."""
    assert humanise.percent(0.984) == "98"
