"""Durations as people write them."""

import re
from typing import Final

import click

_UNITS_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FORM: Final = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smhd])")


def duration_s(text: str) -> float:
    """Return the seconds that ``90s``, ``30m``, ``2h`` or ``1d`` means; fit as the type of a click option.

    Raises:
        click.BadParameter: ``text`` is none of these forms, or no time at all.
    """
    match = _FORM.fullmatch(text)
    if match is None or float(match[1]) == 0.0:
        raise click.BadParameter(f"{text!r} is no duration; right would be 90s, 30m, 2h or 1d")
    return float(match[1]) * _UNITS_S[match[2]]
