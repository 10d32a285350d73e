"""The number formats of the probes: how TensorFlow holds them and how exactly they compute."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Mapping


@dataclass(frozen=True)
class NumberFormat:
    """One number format; the roundoffs are relative."""

    name: str
    tensorflow: str
    """Name of the tensor's type."""
    item_bytes: int
    input_roundoff: float
    """Largest relative change of an input before it is multiplied (tf32 drops 13 bits); 0 where inputs are exact."""
    accumulator_roundoff: float
    """Unit roundoff of one addition on a GPU; twice the nearest-rounding one, for units that truncate."""
    output_roundoff: float
    """Unit roundoff of the result as it is stored."""
    oldest_capability: int = 0
    """Least major compute capability whose hardware has it."""


FORMATS: Mapping[str, NumberFormat] = {
    item.name: item
    for item in (
        NumberFormat("bf16", "bfloat16", 2, 0.0, 2.0**-23, 2.0**-8, 8),
        NumberFormat("fp16", "float16", 2, 0.0, 2.0**-23, 2.0**-11),
        NumberFormat("tf32", "float32", 4, 2.0**-10, 2.0**-23, 2.0**-24, 8),
        NumberFormat("fp32", "float32", 4, 0.0, 2.0**-23, 2.0**-24),
        NumberFormat("fp64", "float64", 8, 0.0, 2.0**-52, 2.0**-53),
    )
}
