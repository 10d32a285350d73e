"""Shapes that recur in the kernel's text files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.host.fields import count_cpus, keyed_numbers, pressure_s


def test_keys_and_numbers_are_found_with_and_without_colon_and_unit() -> None:
    """As in meminfo, vmstat and cpu.stat; what has no number is left out."""
    text = "MemTotal:  100 kB\npswpin 5\nName: x\n\nHugePages_Total: 0\nnegative -1\n"
    assert keyed_numbers(text) == {"MemTotal": 100, "pswpin": 5, "HugePages_Total": 0}


@given(st.text())
def test_any_text_has_keys_and_numbers_or_none(text: str) -> None:
    """Nothing is raised, whatever the text."""
    assert all(value >= 0 for value in keyed_numbers(text).values())


def test_pressure_is_seconds_by_stall() -> None:
    """Microseconds become seconds; older kernels have no full line for the CPU."""
    some = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\n"
    assert pressure_s(some) == {"some": 1.5}
    assert pressure_s(some + some.replace("some", "full")) == {"some": 1.5, "full": 1.5}
    with pytest.raises(ValueError, match="no pressure totals in 'nonsense"):
        pressure_s("nonsense\n")


@pytest.mark.parametrize(("ranges", "count"), [("0-15\n", 16), ("0", 1), ("0-3,8,10-11", 7), ("", 0), ("\n", 0)])
def test_cpus_of_a_list_are_counted(ranges: str, count: int) -> None:
    """Ranges and single CPUs."""
    assert count_cpus(ranges) == count


@pytest.mark.parametrize("ranges", ["a", "0-", "0-1-2", "-1"])
def test_what_is_no_list_of_cpus_is_refused(ranges: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(ValueError, match="no list of CPUs"):
        count_cpus(ranges)
