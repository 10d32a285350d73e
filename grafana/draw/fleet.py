"""Data for the pictures: the demo's story among neighbours, one rack of which has a warm corner, in a Prometheus.

`python -m grafana.draw.fleet DIRECTORY` serves it on port 9099 until Ctrl-C.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from agent.clock import SystemClock
from deploy.demo.backfill import evaluate_rules, load_history, program
from deploy.demo.history import write_history
from deploy.demo.servers import RULES
from deploy.demo.story import NODES, Node, Seat

HOURS: Final = 2.2
PORT: Final = 9099
_WARM: Final = {("R09", "U16"): 12.0, ("R09", "U18"): 17.0, ("R09", "U20"): 13.0}


def neighbours() -> Iterator[Node]:
    """Yield quiet machines at work around the demo's."""
    taken = {(node.rack, node.position) for node in NODES}
    for rack in ("R07", "R08", "R09"):
        for slot in range(10, 22, 2):
            place = (rack, f"U{slot}")
            if place not in taken:
                extra = _WARM.get(place, 0.0)
                seats = tuple(Seat("working", extra + wobble) for wobble in (-1.0, 1.0))
                yield Node(f"gpu-{rack.lower()}-n{slot}", *place, seats)


def main(directory: Path) -> None:
    """Write the history, have the recording rules evaluated over it, and serve."""
    directory.mkdir(parents=True)
    now_s = SystemClock().wall_s()
    (directory / "end").write_text(f"{now_s:.0f}")
    targets = [(node, f"10.0.0.{at}:9838") for at, node in enumerate((*NODES, *neighbours()), 1)]
    write_history(directory / "history.txt", targets, now_s, HOURS * 3600)
    load_history(directory / "history.txt", directory / "data")
    evaluate_rules(RULES / "heatsoak-recording.yaml", directory / "data", now_s - HOURS * 3600, now_s)
    command = [
        program("prometheus"), f"--config.file={directory / 'empty.yaml'}", f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address=127.0.0.1:{PORT}", "--log.level=error",
    ]  # fmt: skip
    subprocess.run(command, check=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
