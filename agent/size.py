"""Amounts of memory as people write them."""

import re
from typing import Final

import click

_UNITS_BYTES: Final = {"MIB": 1 << 20, "GIB": 1 << 30, "MB": 10**6, "GB": 10**9}
_FORM: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([MG]i?B)", re.IGNORECASE)


def size_bytes(text: str) -> int:
    """Return the bytes that ``16GiB``, ``512MiB`` or ``24GB`` means; fit as the type of a click option.

    Raises:
        click.BadParameter: ``text`` is none of these forms, or nothing at all.
    """
    match = _FORM.fullmatch(text)
    if match is None or float(match[1]) == 0.0:
        raise click.BadParameter(f"{text!r} is no amount of memory; right would be 16GiB, 512MiB or 24GB")
    return int(float(match[1]) * _UNITS_BYTES[match[2].upper()])


def limit_text(limit_bytes: int) -> str:
    """Return a memory limit for people, as ``16 GiB``; 0 bytes stand for none."""
    return f"{limit_bytes / _UNITS_BYTES['GIB']:g} GiB" if limit_bytes else "none"
