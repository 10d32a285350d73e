"""Plays every scenario with every seed and prints how rules and baselines did: ``python -m benchmarks.faultbench``."""

import argparse
import logging
import os
import sys
import time
from collections.abc import Iterable, Sequence
from multiprocessing.pool import Pool
from pathlib import Path

import msgspec
import structlog

from agent.config.settings import VerdictSettings
from benchmarks.faultbench.play import Run, play
from benchmarks.faultbench.report import print_report, print_tuning
from benchmarks.faultbench.scenario import Scenario, load_profiles, load_scenarios
from benchmarks.faultbench.score import score
from benchmarks.faultbench.tuning import limits_of, tuned

SEEDS = 100
RECALL = 0.95
_PROFILES = load_profiles()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; return 0 if recall is reached and no healthy run raised an alarm."""
    parser = argparse.ArgumentParser(prog="faultbench", description=__doc__)
    parser.add_argument(
        "--seeds", type=int, default=SEEDS, help="noise seeds a scenario; half of them tune, half score"
    )
    parser.add_argument("--only", default="", help="play scenarios whose name or family holds this text")
    parser.add_argument("--no-tuning", action="store_true", help="score the shipped thresholds on all seeds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--json", type=Path, help="write the figures here")
    options = parser.parse_args(arguments)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    scenarios = [s for s in load_scenarios() if options.only in s.name or options.only in s.family]
    began_s = time.monotonic()
    with Pool(options.jobs) as pool:
        limits = VerdictSettings()
        seeds = range(options.seeds)
        if not options.no_tuning:
            choices = tuned(scenarios, range(0, options.seeds, 2), lambda jobs: _play_all(pool, jobs))
            print_tuning(choices)
            limits = limits_of(choices)
            seeds = range(1, options.seeds, 2)
        results = _play_all(pool, [(scenario, seed, limits) for scenario in scenarios for seed in seeds])
    total = score(results)
    print_report(total, scenarios, len(seeds), time.monotonic() - began_s)
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(total, enc_hook=str), indent=1))
    return 0 if total.recall >= RECALL and not total.healthy_alarmed and not total.rule_errors else 1


Job = tuple[Scenario, int, VerdictSettings]


def _play_all(pool: Pool, jobs: Iterable[Job]) -> list[tuple[Scenario, Run]]:
    listed = list(jobs)
    return list(zip((job[0] for job in listed), pool.imap(_play_one, listed, chunksize=8), strict=True))


def _play_one(job: Job) -> Run:
    scenario, seed, limits = job
    return play(scenario, _PROFILES, seed, limits)


if __name__ == "__main__":
    sys.exit(main())
