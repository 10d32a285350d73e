"""What the scatter of a card's judged figures over fresh processes is made of.

    python -m benchmarks.noise benchmarks/results/h200/twenty_fresh_children.json

For each figure: its coefficient of variation with 95 % limits, whether runs resemble the one before, and what each
thing that is recorded with a run explains of it: the correlation, how often shuffled values show as much, and the
scatter that is left, predicting each run from the others.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SHUFFLES = 20_000
RECORDED: Mapping[str, tuple[str, ...]] = {
    "time": ("wall_s",),
    "hottest temperature": ("attribution", "temperature_max_celsius"),
    "SM clock": ("attribution", "sm_clock_median_hertz"),
    "power": ("attribution", "power_mean_watts"),
    "host share": ("result", "timing", "host_share"),
    "1 / steps in a batch": ("result", "timing", "inner"),
}
INVERTED = "1 / steps in a batch"


def recorded(records: Sequence[Mapping[str, Any]]) -> dict[str, Floats]:
    """Return what is recorded with each run, left out what never changes."""
    found = {}
    for name, path in RECORDED.items():
        values = np.array([_value(record, path) for record in records], dtype=np.float64)
        if np.ptp(values) > 0:
            found[name] = 1.0 / values if name == INVERTED else values
    return found


def _value(record: Mapping[str, Any], path: Sequence[str]) -> float:
    value: Any = record
    for key in path:
        value = value[key]
    return float(value)


def shares(records: Sequence[Mapping[str, Any]]) -> Floats:
    """Return how far each run lies from their median, in shares of it."""
    values = np.array([record["result"]["value"] for record in records], dtype=np.float64)
    return values / np.median(values) - 1.0


def limits_of(deviation: float, runs: int) -> tuple[float, float]:
    """Return the 95 % limits of a normal standard deviation that so many runs showed (Wilson and Hilferty)."""
    free = runs - 1
    low, high = (free * (1.0 - 2.0 / (9.0 * free) + z * np.sqrt(2.0 / (9.0 * free))) ** 3 for z in (1.96, -1.96))
    return float(deviation * np.sqrt(free / low)), float(deviation * np.sqrt(free / high))


def autocorrelation(values: Floats) -> float:
    """Return how much each run resembles the one before: within 2 / sqrt(runs) of 0 where it does not."""
    centred = values - values.mean()
    return float(centred[:-1] @ centred[1:] / (centred @ centred))


def correlation(one: Floats, other: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return the correlation, and the share of shuffles that show as much."""
    seen = float(np.corrcoef(one, other)[0, 1])
    shuffled = [abs(np.corrcoef(one, rng.permutation(other))[0, 1]) >= abs(seen) - 1e-12 for _ in range(SHUFFLES)]
    return seen, (sum(shuffled) + 1) / (SHUFFLES + 1)


def left_over(values: Floats, *explaining: Floats) -> float:
    """Return the standard deviation that is left when each run is predicted from the others by a plane."""
    design = np.column_stack([np.ones(len(values)), *explaining])
    hat = design @ np.linalg.pinv(design)
    return float(np.sqrt(np.mean(((values - hat @ values) / (1.0 - np.diag(hat))) ** 2)))


def main() -> None:
    """Print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="records of runs, as `heatsoak` keeps them")
    records = json.loads(parser.parse_args().file.read_text())
    rng = np.random.default_rng(0)
    by_probe: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        by_probe.setdefault(record["result"]["probe"], []).append(record)
    for probe, runs in by_probe.items():
        values = shares(runs)
        deviation = float(values.std(ddof=1))
        low, high = limits_of(deviation, len(values))
        print(f"{probe}: {len(values)} runs, {deviation:.2%} ({low:.2%} to {high:.2%}), ", end="")
        print(f"run to run {autocorrelation(values):+.2f}, predicted by the others' mean {left_over(values):.2%}")
        for name, explaining in recorded(runs).items():
            seen, chance = correlation(explaining, values, rng)
            print(f"  {name:22} r {seen:+.2f}  chance {chance:.4f}  left over {left_over(values, explaining):.2%}")
    figures = [shares(runs) for runs in by_probe.values()]
    if len(figures) == 2 and len(figures[0]) == len(figures[1]):
        seen, chance = correlation(figures[0], figures[1], rng)
        print(f"both: r {seen:+.2f}, chance {chance:.4f}; their mean {np.mean(figures, axis=0).std(ddof=1):.2%}")


if __name__ == "__main__":
    main()
