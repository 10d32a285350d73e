"""Fuzz all readers on all CPUs: python -m tests.fuzz [--inputs N] [--seed S]; prints a table, writes no file."""

import argparse
import os
import random
import time
from concurrent.futures import ProcessPoolExecutor

from tests.fuzz.run import fuzz
from tests.fuzz.targets import TARGETS

PIECE = 10_000
"""Inputs that one process takes at a time."""


def main() -> None:
    """Run and report; ends with a traceback that holds the input where one broke a promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    begin_s = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        work = []
        for target in TARGETS:
            left, piece = round(arguments.inputs * target.share), 0
            while left > 0:
                work.append(pool.submit(fuzz, target.name, min(PIECE, left), arguments.seed + piece))
                left, piece = left - PIECE, piece + 1
        runs = [task.result() for task in work]
    for target in TARGETS:
        mine = [run for run in runs if run.name == target.name]
        count, accepted = sum(run.inputs for run in mine), sum(run.accepted for run in mine)
        used_s = sum(run.seconds for run in mine)
        print(f"{target.name:>18}: {count:>9,} inputs, {accepted:>8,} accepted, {used_s:7.1f} s of a CPU")
    print(f"{sum(run.inputs for run in runs):,} inputs in {time.monotonic() - begin_s:.0f} s, every promise kept")


if __name__ == "__main__":
    main()
