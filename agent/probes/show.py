"""Probe results for people: one line each, and a line of progress while they are made."""

import sys
from collections.abc import Callable, Sequence
from typing import Final, TextIO

from agent.model.probe import ChildEvent, Hello, Phase, ProbeRecord, ProbeRequest, ProbeResult
from agent.model.vocabulary import PROBE_REASONS

_PREFIXED: Final = {"flop/s": "FLOP/s", "byte/s": "B/s", "byte": "B"}
_PREFIXES: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def value_text(result: ProbeResult) -> str:
    """Return a result's value in the unit people use; status and reason where there is none."""
    if result.value is None:
        return f"{result.status}: {result.reason}"
    return quantity_text(result.value, result.unit)


def cause_text(result: ProbeResult) -> str:
    """Return why there is no value: the reason, and what was said of it or what it means."""
    word = result.reason.partition(":")[0]
    meaning = PROBE_REASONS[result.status].get(word, "")
    return ": ".join(filter(None, (result.reason, result.detail or meaning)))


def quantity_text(value: float, unit: str) -> str:
    """Return a number with its unit, scaled where the unit takes prefixes, as ``662 TFLOP/s``."""
    prefixed = _PREFIXED.get(unit)
    if prefixed is None:
        number = f"{value:,.1f}" if value >= 10 else f"{value:.3g}"
        return f"{number} {unit}".rstrip()
    scale, prefix = next(((scale, prefix) for scale, prefix in _PREFIXES if value >= scale), (1.0, ""))
    return f"{value / scale:,.4g} {prefix}{prefixed}"


def record_row(record: ProbeRecord) -> tuple[str, ...]:
    """Return the cells of one record: device, probe, value, spread, circumstances."""
    result, seen = record.result, record.attribution
    spread = ""
    if result.timing and result.timing.median_s:
        spread = f"±{result.timing.mad_s / result.timing.median_s:.2%}"
    circumstances = []
    if seen and seen.sm_clock_median_hertz:
        circumstances.append(f"{seen.sm_clock_median_hertz / 1e6:.0f} MHz")
    if seen and seen.power_mean_watts:
        circumstances.append(f"{seen.power_mean_watts:.0f} W")
    if seen and seen.temperature_max_celsius:
        circumstances.append(f"{seen.temperature_max_celsius:.0f} °C")
    if seen and seen.contended:
        circumstances.append("contended")
    name = " ".join(filter(None, (result.probe, result.variant, result.dtype, result.shape)))
    device = "cpu" if record.gpu is None and record.uuid == "cpu" else f"gpu {record.gpu}"
    mode = " xla" if result.mode == "xla" else ""
    return (device, name + mode, value_text(result), spread, ", ".join(circumstances) or result.detail)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows under their head, columns aligned."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)]
    return "\n".join(line.rstrip() for line in lines)


class Progress:
    """One line on a terminal that says what is going on; nothing elsewhere."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        """Write to ``stream`` where it is a terminal."""
        self._stream = stream
        self._shown = stream.isatty()

    def say(self, text: str) -> None:
        """Replace the line."""
        if self._shown:
            self._stream.write(f"\r\x1b[K{text}")
            self._stream.flush()

    def of(self, title: str, requests: Sequence[ProbeRequest]) -> Callable[[ChildEvent], None]:
        """Return what shows the events of one child under a title."""

        def show(event: ChildEvent) -> None:
            if isinstance(event, Hello):
                self.say(f"{title}: TensorFlow {event.environment.tensorflow} is up")
            elif isinstance(event, Phase) and event.request < len(requests):
                request = requests[event.request]
                self.say(f"{title}: {request.probe} {request.dtype}".rstrip() + f", {event.phase}")

        return show

    def clear(self) -> None:
        """Leave no line behind."""
        self.say("")
