"""Numbers, sizes and times as people read them."""

from typing import Final

_PREFIXES: Final = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_BINARY: Final = ((2.0**50, "PiB"), (2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"))
_SPANS: Final = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"))
_FLOP: Final = "flop/s"


def number(value: float) -> str:
    """Return ``value`` with three or more significant digits: ``0.123``, ``12.3``, ``1,234``."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 1 or value == 0 else f"{value:.3g}"


def with_prefix(value: float, unit: str) -> tuple[str, str]:
    """Return number and unit with the decimal prefix that fits: 6.59e14 ``flop/s`` is ``659``, ``TFLOP/s``."""
    shown = "FLOP/s" if unit == _FLOP else unit
    for factor, prefix in _PREFIXES:
        if abs(value) >= factor:
            return number(value / factor), f"{prefix}{shown}"
    return number(value), shown


def size(bytes_: float) -> tuple[str, str]:
    """Return number and unit of a size in bytes with the binary prefix that fits."""
    for factor, unit in _BINARY:
        if abs(bytes_) >= factor:
            return number(bytes_ / factor), unit
    return number(bytes_), "B"


def quantity(value: float, unit: str) -> tuple[str, str]:
    """Return number and unit of a probe's value."""
    if unit == "byte":
        return size(value)
    if unit == "byte/s":
        return with_prefix(value, "B/s")
    if unit == _FLOP:
        return with_prefix(value, unit)
    return number(value), unit


def share_of_size(part_bytes: float, whole_bytes: float) -> tuple[str, str, str]:
    """Return part, whole and the one unit for both that fits the whole."""
    whole, unit = size(whole_bytes)
    factor = next((factor for factor, name in _BINARY if name == unit), 1.0)
    part = part_bytes / factor
    return (f"{part:.1f}" if part < 10 else number(part)), whole, unit


def span(seconds: float) -> str:
    """Return a length of time in the largest unit of which it has two: ``95 s``, ``21 min``, ``36 h``, ``5 d``."""
    for length_s, unit in _SPANS:
        if seconds >= 2 * length_s:
            return f"{seconds / length_s:.0f} {unit}"
    return f"{max(0.0, seconds):.0f} s"


def percent(share: float) -> str:
    """Return a share of 0 to 1 in percent, without its sign."""
    return f"{share * 100:.0f}"
