"""Shapes that recur in the kernel's text files."""

import re

from agent.model.text import clean_label

_CPU_RANGE = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_TOTAL_US = re.compile(r"^(some|full) .*\btotal=(\d+)$", re.MULTILINE)


def keyed_numbers(text: str) -> dict[str, int]:
    """Return lines of a key and a whole number, as in meminfo, vmstat, cpu.stat; others are left out.

    A colon after the key and a unit after the number are dropped.
    """
    rows = (line.split() for line in text.splitlines())
    return {row[0].rstrip(":"): int(row[1]) for row in rows if len(row) > 1 and row[1].isdecimal()}


def pressure_s(text: str) -> dict[str, float]:
    """Return the stalled seconds of a pressure file, by ``some`` and ``full``.

    Raises:
        ValueError: the text has no such line.
    """
    if not (totals := _TOTAL_US.findall(text)):
        raise ValueError(f"no pressure totals in {clean_label(text)!r}")
    return {kind: int(total) / 1e6 for kind, total in totals}


def count_cpus(ranges: str) -> int:
    """Return how many CPUs a list such as ``0-3,8`` names.

    Raises:
        ValueError: it is no such list.
    """
    parts = [part for part in ranges.strip().split(",") if part]
    found = [match for part in parts if (match := _CPU_RANGE.fullmatch(part))]
    if len(found) < len(parts):
        raise ValueError(f"{clean_label(ranges)!r} is no list of CPUs; right would be one like 0-3,8")
    return sum(int(match[2] or match[1]) - int(match[1]) + 1 for match in found)
