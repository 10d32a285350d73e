"""Every trouble comes with a likely cause."""

import pynvml
import pytest

from agent.nvml.advice import advice

CODES = sorted(name.removeprefix("NVML_ERROR_") for name in dir(pynvml) if name.startswith("NVML_ERROR_"))


@pytest.mark.parametrize("error", [*CODES, "NO_GPU", "HUNG", "CRASHED", "BAD_ANSWER", "CANNOT_START", "PAUSED"])
def test_error_has_advice_in_one_line(error: str) -> None:
    """A person who reads it knows where to look."""
    text = advice(error)
    assert 20 < len(text) < 200
    assert "\n" not in text


def test_no_error_needs_no_advice() -> None:
    """While all is well nothing is advised."""
    assert advice("") == ""
