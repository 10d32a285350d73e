"""What a card once measured, to be compared with what it measures now."""

import msgspec


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A card's own figure for one kind of probe under one environment, frozen until an operator renews it."""

    uuid: str
    probe: str
    dtype: str
    shape: str
    mode: str = "graph"
    variant: str = ""
    method_version: int = 0
    tensorflow: str = ""
    driver: str = ""
    power_limit_watts: float | None = None
    median: float
    """In the probe's unit."""
    mad: float
    """Median absolute deviation over the runs, in the probe's unit."""
    runs: int
    first_wall_s: float
    last_wall_s: float
    disputed: bool = False
    """Made after a change of driver or TensorFlow, and too far from the one before to replace it."""
