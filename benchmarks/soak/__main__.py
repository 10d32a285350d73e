"""Run the soak and report: python -m benchmarks.soak [--ticks N] [--minutes M] [--tick-s S].

It ends after N ticks, 604,800 being those of a week at the agent's usual second, or after M minutes,
whichever comes first. Ticks are what is accelerated: the reader's own times (back-off, tiers, the pause before a
card that hung is tried again) stay as they are, while troubles, probes and scrapes come far closer together than
on any machine. The report says how many of each there were.
"""

import argparse
import json
import statistics
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.soak.observe import Observer, drift
from benchmarks.soak.scrapers import GoodScraper, Nuisances
from benchmarks.soak.storm import Storm
from tests.support.agent import ROOT, AgentProcess, eventually, running_agent
from tests.support.fakenvml import write_scenario
from tests.support.stub_interpreter import StubInterpreter

WEEK_TICKS = 604_800
PROBE_INTERVAL_S = 6.0
PROBE_DEADLINE_S = 1.5
CARDS = 2
BACK_S = 660.0
"""The longest a card stays out after it hung: near the end nothing may cost a card that should be back."""


def main() -> None:
    """Soak, print a table, write the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ticks", type=int, default=WEEK_TICKS)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--tick-s", type=float, default=0.005)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, default=ROOT / ".build" / "soak.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="heatsoak-soak-") as name:
        directory = Path(name)
        stub = StubInterpreter(directory)
        scenario = write_scenario(directory / "storm.scenario", ["include h200x2"])
        program = ("-m", "benchmarks.soak.agent")
        with running_agent(
            directory, scenario=scenario, environ=_environ(stub, arguments.tick_s), program=program
        ) as agent:
            eventually(lambda: agent.value("heatsoak_nvml_up") == 1.0, "the driver")
            report = _soak(agent, Storm(scenario, stub, arguments.seed), arguments)
            report["exit_code"] = agent.stop()
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(report, indent=1) + "\n")
    for key, value in report.items():
        print(f"{key:>34}  {value}")


def _environ(stub: StubInterpreter, tick_s: float) -> dict[str, str]:
    return {
        **stub.settings(),
        "SOAK_TICK_S": str(tick_s),
        "FAKE_NVML_SPEED": "20",
        "HEATSOAK_PROBE_INTERVAL_S": str(PROBE_INTERVAL_S),
        "HEATSOAK_PROBE_DEADLINE_S": str(PROBE_DEADLINE_S),
        "HEATSOAK_NVML_INIT_DEADLINE_S": "3",
    }


def _soak(agent: AgentProcess, storm: Storm, arguments: argparse.Namespace) -> dict[str, object]:
    address = agent.url.removeprefix("http://")
    good, bad = GoodScraper(address), Nuisances(address, arguments.seed)
    observer = Observer(agent.pid, lambda: agent.get("/metrics")[1], lambda: storm.now)
    ended, begin_s = threading.Event(), time.monotonic()

    def left_s() -> float:
        """Return how many seconds the soak will still take, by ticks or by time."""
        elapsed_s, done = time.monotonic() - begin_s, observer.ticks - observer.first_tick
        by_ticks_s = elapsed_s * (arguments.ticks / done - 1.0) if done else float("inf")
        return float(min(60.0 * arguments.minutes - elapsed_s, by_ticks_s))

    work = [
        threading.Thread(target=storm.run, args=(ended, lambda: left_s() > BACK_S)),
        *(threading.Thread(target=task.run, args=(ended,)) for task in (good, bad, observer)),
    ]
    for thread in work:
        thread.start()
    while left_s() > 0 and agent.process.poll() is None:
        time.sleep(1.0)
    ended.set()
    for thread in work:
        thread.join()
    elapsed_s = time.monotonic() - begin_s
    back_s = _seconds_until_back(agent)
    return {
        **_pace(observer, elapsed_s, arguments.tick_s),
        **_held(observer),
        "overran_while": dict(observer.overran_while),
        "longest_without_a_tick_s": round(good.oldest_s, 3),
        **_probes(agent, elapsed_s),
        **_scrapes(good, bad),
        "troubles": dict(storm.counts),
        "all_cards_back_after_s": back_s,
        "reader_restarts": agent.value("heatsoak_nvml_reader_restarts_total"),
        "internal_errors": sum(bool(entry.get("exception")) for entry in agent.log),
    }


def _seconds_until_back(agent: AgentProcess) -> float | None:
    """Return how long it takes after the storm until every card gives readings; None where that is over 75 s."""
    begin_s = time.monotonic()
    while time.monotonic() - begin_s < 75.0:
        if len(agent.metrics().get("heatsoak_gpu_temperature_celsius", {})) == CARDS:
            return round(time.monotonic() - begin_s, 1)
        time.sleep(0.5)
    return None


def _pace(observer: Observer, elapsed_s: float, tick_s: float) -> dict[str, object]:
    ticks = observer.ticks - observer.first_tick
    return {
        "minutes": round(elapsed_s / 60, 1),
        "tick_s": tick_s,
        "ticks": ticks,
        "days_of_ticks": round(ticks / 86_400, 2),
        "ticks_per_second": round(ticks / elapsed_s, 1),
        "ticks_not_made": int(max(0.0, elapsed_s / tick_s - ticks)),
        "ticks_that_overran": observer.overran,
    }


def _held(observer: Observer) -> dict[str, object]:
    samples = observer.samples
    before_bytes, after_bytes = drift([sample.memory_bytes for sample in samples])
    return {
        "memory_mb_early_late": [round(before_bytes / 1e6, 2), round(after_bytes / 1e6, 2)],
        "memory_drift_mb": round((after_bytes - before_bytes) / 1e6, 2),
        **{
            f"{name}_early_late_most": [*drift(column), max(column)]
            for name in ("descriptors", "threads", "children")
            for column in [[getattr(sample, name) for sample in samples]]
        },
        "zombies_most": max(sample.zombies for sample in samples),
    }


def _probes(agent: AgentProcess, elapsed_s: float) -> dict[str, object]:
    runs: dict[str, int] = {}
    for key, count in agent.metrics().get("heatsoak_probe_runs_total", {}).items():
        labels = dict(key)
        if count and labels["probe"] == "matmul":
            runs[f"{labels['status']} {labels['reason']}".strip()] = int(count)
    due = int(CARDS * elapsed_s / PROBE_INTERVAL_S)
    return {"probes_due": due, "probes_accounted_for": sum(runs.values()), "probes": runs}


def _scrapes(good: GoodScraper, bad: Nuisances) -> dict[str, object]:
    cuts = statistics.quantiles(good.latencies_s, n=1000)
    return {
        "scrapes": len(good.latencies_s),
        "scrape_ms_p50_p99_most": [round(1e3 * each, 1) for each in (cuts[499], cuts[989], max(good.latencies_s))],
        "scrapes_failed": dict(good.failures),
        "nuisances": dict(bad.counts),
    }


if __name__ == "__main__":
    main()
