"""Amounts of memory as people write them."""

import click
import pytest

from agent.size import limit_text, size_bytes


@pytest.mark.parametrize(
    ("text", "expected"),
    [("16GiB", 16 << 30), ("512 MiB", 512 << 20), ("24GB", 24_000_000_000), ("1.5gib", 3 << 29)],
)
def test_amounts_are_read(text: str, expected: int) -> None:
    """With powers of 1024 or of 1000, as the unit says."""
    assert size_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "16", "16 G", "0GiB", "-1GiB", "1e3GiB", "GiB"])
def test_anything_else_is_refused_with_what_would_be_right(text: str) -> None:
    """No unit is guessed."""
    with pytest.raises(click.BadParameter, match="16GiB"):
        size_bytes(text)


def test_a_limit_is_told_as_it_is_given() -> None:
    """In GiB, as cards are built."""
    assert [limit_text(size) for size in (0, 16 << 30, 512 << 20)] == ["none", "16 GiB", "0.5 GiB"]
