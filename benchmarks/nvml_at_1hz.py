"""What each row of the quantities table costs when it is read once a second, and what a whole sweep costs.

    python -m benchmarks.nvml_at_1hz [--seconds 60] [--card 0] [--output FILE]

Needs nvidia-ml-py and msgspec only. A driver call that is made at 1 Hz may cost a hundred times what it costs
twelve times in a row, so the tiers of the table are chosen by these figures.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from agent.model.quantities import QUANTITIES
from agent.model.quantity import Derived, Source
from agent.model.vocabulary import Tier
from agent.nvml.door import Door, RefusedError
from agent.nvml.sweep import CardReader, Sweep

TIERS: tuple[Tier, ...] = ("fast", "samples", "slow", "static")


class Timings:
    """Durations of one thing, in seconds of wall and of this process's CPU time."""

    def __init__(self) -> None:
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []
        self.refused = ""

    def time(self, work: Callable[[], object]) -> None:
        """Do it once and note what it cost."""
        wall_s, cpu_s = time.perf_counter(), time.process_time()
        try:
            work()
        except RefusedError as error:
            self.refused = error.name
        self.wall_s.append(time.perf_counter() - wall_s)
        self.cpu_s.append(time.process_time() - cpu_s)

    def report(self) -> dict[str, Any]:
        """Return median, 90th percentile, maximum and the first, in microseconds."""
        later = sorted(self.wall_s[1:]) or self.wall_s
        figures: dict[str, Any] = {
            "median_us": round(statistics.median(later) * 1e6, 1),
            "p90_us": round(later[int(0.9 * (len(later) - 1))] * 1e6, 1),
            "max_us": round(later[-1] * 1e6, 1),
            "first_us": round(self.wall_s[0] * 1e6, 1),
            "cpu_median_us": round(statistics.median(self.cpu_s) * 1e6, 1),
            "times": len(self.wall_s),
        }
        return figures | ({"refused": self.refused} if self.refused else {})


def ask(door: Door, handle: object, card: CardReader, source: Source) -> float:
    """Read one source as a sweep of its own."""
    sweep = Sweep(door, handle, card)
    sweep.prefetch([source])
    return sweep.value(source)


def measure(index: int, seconds: int) -> dict[str, Any]:
    """Read every row on its own, then every tier as the reader does, once a second."""
    door = Door(pynvml)
    door.call("InitWithFlags", 0)
    handle = door.call("DeviceGetHandleByIndex", index)
    alone, whole = CardReader(door, handle), CardReader(door, handle)
    calls = {
        (row.key, place): Timings()
        for row in QUANTITIES
        for place, source in enumerate(row.sources)
        if not isinstance(source, Derived)
    }
    sources = {(row.key, place): source for row in QUANTITIES for place, source in enumerate(row.sources)}
    sweeps = {tier: Timings() for tier in TIERS}
    due_s = time.monotonic()
    for second in range(seconds):
        for key, timings in calls.items():
            timings.time(lambda key=key: ask(door, handle, alone, sources[key]))  # type: ignore[misc]
        for tier, timings in sweeps.items():
            timings.time(lambda tier=tier, second=second: whole.read(second, index, (tier,), lambda: None))  # type: ignore[misc]
        due_s += 1.0
        time.sleep(max(0.0, due_s - time.monotonic()))
    return {
        "card": str(door.call("DeviceGetName", handle)),
        "driver": str(door.call("SystemGetDriverVersion")),
        "seconds": seconds,
        "sweeps": {tier: timings.report() for tier, timings in sweeps.items()},
        "calls": {
            f"{key} ({type(sources[key, place]).__name__} {place})": timings.report()
            for (key, place), timings in calls.items()
        },
    }


def main() -> int:
    """Measure and print JSON, the dearest calls first on standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--card", type=int, default=0)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    figures = measure(options.card, options.seconds)
    text = json.dumps(figures, indent=1) + "\n"
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    dearest = sorted(figures["calls"].items(), key=lambda item: -item[1]["median_us"])
    for name, figure in [*figures["sweeps"].items(), *dearest[:20]]:
        sys.stderr.write(f"{figure['median_us']:10.1f} us  first {figure['first_us']:10.1f} us  {name}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
