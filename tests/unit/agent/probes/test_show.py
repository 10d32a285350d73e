"""Probe results as people read them."""

import io

import msgspec
import pytest

from agent.model.probe import Device as ProbeDevice
from agent.model.probe import Environment, Hello, Phase, ProbeRequest, ProbeResult, Timing
from agent.probes.show import Progress, cause_text, record_row, table, value_text
from tests.support.records import START_S, record


@pytest.mark.parametrize(
    ("unit", "value", "text"),
    [
        ("flop/s", 6.62e14, "662 TFLOP/s"),
        ("flop/s", 5.78e10, "57.8 GFLOP/s"),
        ("byte/s", 4.1e12, "4.1 TB/s"),
        ("byte", 1.4e11, "140 GB"),
        ("images/s", 6241.44, "6,241.4 images/s"),
        ("flop/s", 5.0, "5 FLOP/s"),
    ],
)
def test_values_are_scaled_to_readable_numbers(unit: str, value: float, text: str) -> None:
    """Units keep their prefix near the number."""
    assert value_text(ProbeResult(probe="matmul", status="ok", value=value, unit=unit)) == text


def test_without_a_value_status_and_reason_stand_there() -> None:
    """Never an empty cell, never a 0."""
    assert value_text(ProbeResult(probe="matmul", status="skipped", reason="busy")) == "skipped: busy"


def test_a_cause_is_told_in_words() -> None:
    """By what was said of it, else by what its word means."""
    lost = ProbeResult(probe="matmul", status="error", reason="crashed:SIGABRT", detail="double free")
    assert cause_text(lost) == "crashed:SIGABRT: double free"
    bare = ProbeResult(probe="matmul", status="error", reason="tensorflow_missing")
    assert cause_text(bare) == "tensorflow_missing: the probe's interpreter has no TensorFlow"


def test_rows_carry_spread_and_circumstances() -> None:
    """What is needed to believe the number."""
    one = record(START_S)
    timing = Timing(0.1, 0.09, 0.11, 0.002, 10, 20, 1.0, 1.0)
    one = msgspec.structs.replace(one, result=msgspec.structs.replace(one.result, timing=timing))
    assert record_row(one) == ("gpu 0", "matmul bf16 8192x8192x8192", "660 TFLOP/s", "±2.00%", "1600 MHz, 45 °C")


def test_columns_are_aligned() -> None:
    """Cells start below their heads; no line ends in spaces."""
    assert table(("a", "b"), [("long", ""), ("x", "y")]) == "a     b\nlong\nx     y"


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Say so."""
        return True


def test_progress_is_shown_on_a_terminal_only() -> None:
    """A pipe stays clean."""
    requests = (ProbeRequest("matmul", "bf16"),)
    for stream in (io.StringIO(), Terminal()):
        progress = Progress(stream)
        show = progress.of("gpu 0", requests)
        show(Hello(1, Environment(tensorflow="2.21.0"), ProbeDevice("gpu")))
        show(Phase(0, "warmup", 1.0))
        progress.clear()
        assert ("gpu 0: matmul bf16, warmup" in stream.getvalue()) is stream.isatty()
