"""Hostile text becomes one printable, encodable line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.text import clean_label

ANY_TEXT = st.text(st.characters(), max_size=300)


@given(ANY_TEXT, st.integers(1, 200))
def test_the_result_is_one_printable_line_within_the_limit(text: str, limit: int) -> None:
    """Whatever comes in, what goes out encodes, prints and fits."""
    clean = clean_label(text, limit)
    clean.encode("utf-8")
    assert clean.isprintable()
    assert len(clean) <= limit
    assert clean.splitlines() in ([clean], [])


@given(ANY_TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    """Clean text passes unchanged."""
    assert clean_label(clean_label(text)) == clean_label(text)


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("NVIDIA H200", "NVIDIA H200"),
        ('a"b\\c', 'a"b\\c'),
        ("two\nlines\r", "two\ufffdlines\ufffd"),
        ("nul\0 bell\a del\x7f", "nul\ufffd bell\ufffd del\ufffd"),
        ("lone\udcff", "lone\ufffd"),
        ("over\u202eride", "over\ufffdride"),
        ("Gehäuse 温度", "Gehäuse 温度"),
        ("", ""),
    ],
)
def test_only_what_cannot_be_printed_is_replaced(text: str, clean: str) -> None:
    """Quotes, backslashes and letters of any script stay."""
    assert clean_label(text) == clean


def test_long_text_ends_in_an_ellipsis() -> None:
    """300 characters become 128, and the cut shows."""
    assert clean_label("x" * 300) == "x" * 127 + "\u2026"
    assert clean_label("x" * 128) == "x" * 128
