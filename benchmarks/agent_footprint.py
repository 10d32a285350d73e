"""Memory and CPU of a running agent and its reader, and the time of a scrape.

    python -m benchmarks.agent_footprint PID --seconds 120 --url http://127.0.0.1:9838/metrics

PSS is proportional set size from smaps_rollup: shared pages count once among those who share them.
"""

import argparse
import json
import os
import statistics
import time
import urllib.request
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def main() -> None:
    """Measure the process ``PID`` and its children and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pid", type=int)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--scrape-every", type=float, default=15.0)
    parser.add_argument("--url", default="http://127.0.0.1:9838/metrics")
    arguments = parser.parse_args()
    print(json.dumps(_measure(arguments.pid, arguments.seconds, arguments.scrape_every, arguments.url), indent=1))


def _measure(pid: int, seconds: float, scrape_every_s: float, url: str) -> dict[str, object]:
    pids = {"agent": pid, **_readers(pid)}
    before, start_s = {name: _cpu_s(p) for name, p in pids.items()}, time.monotonic()
    scrapes_s, page_bytes = [], 0
    while (elapsed_s := time.monotonic() - start_s) < seconds:
        time.sleep(min(scrape_every_s, seconds - elapsed_s))
        scrape_start_s = time.monotonic()
        with urllib.request.urlopen(url, timeout=10) as answer:
            page_bytes = len(answer.read())
        scrapes_s.append(time.monotonic() - scrape_start_s)
    elapsed_s = time.monotonic() - start_s
    cpu = {name: (_cpu_s(p) - before[name]) / elapsed_s for name, p in pids.items()}
    pss = {name: _pss_bytes(p) for name, p in pids.items()}
    return {
        "seconds": round(elapsed_s, 1),
        "cpu_share_of_a_core": {**cpu, "together": sum(cpu.values())},
        "pss_mb": {name: round(value / 1e6, 1) for name, value in {**pss, "together": sum(pss.values())}.items()},
        "scrapes": len(scrapes_s),
        "scrape_ms_median": round(statistics.median(scrapes_s) * 1e3, 2),
        "scrape_ms_max": round(max(scrapes_s) * 1e3, 2),
        "page_bytes": page_bytes,
    }


def _readers(pid: int) -> dict[str, int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = {}
    for child in children:
        if b"agent.nvml.reader" in Path(f"/proc/{child}/cmdline").read_bytes():
            found["reader"] = int(child)
    return found


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def _pss_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    message = f"/proc/{pid}/smaps_rollup: no Pss line"
    raise ValueError(message)


if __name__ == "__main__":
    main()
