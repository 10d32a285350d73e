"""What an agent's process holds, sampled from outside: memory, descriptors, threads, children."""

import re
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Sequence

from tests.support.process import Holdings, look

_COUNTS = re.compile(r"^(heatsoak_ticks_total|heatsoak_tick_overruns_total) (\S+)$", re.MULTILINE)


class Observer:
    """Looks every two seconds, and reads the agent's own count of its ticks."""

    def __init__(self, pid: int, page: Callable[[], str], label: Callable[[], str]) -> None:
        """Take the process, how to get its metrics page, and what is going on."""
        self._pid = pid
        self._page = page
        self._label = label
        self.samples: list[Holdings] = []
        self.ticks = self.overran = 0
        self.overran_while: Counter[str] = Counter()
        """Ticks that overran, by what went on meanwhile."""
        self._count()
        self.first_tick = self.ticks

    def run(self, ended: threading.Event) -> None:
        """Look until ``ended``."""
        while not ended.wait(2.0):
            self.samples.append(look(self._pid))
            before, label = self.overran, self._label()
            self._count()
            self.overran_while[label] += self.overran - before

    def _count(self) -> None:
        found = dict(_COUNTS.findall(self._page()))
        self.ticks = int(float(found.get("heatsoak_ticks_total", 0)))
        self.overran = int(float(found.get("heatsoak_tick_overruns_total", 0)))


def drift(values: Sequence[float]) -> tuple[float, float]:
    """Return the medians of the second fifth and of the last fifth of ``values``: the first fifth warms up."""
    fifth = max(1, len(values) // 5)
    return statistics.median(values[fifth : 2 * fifth] or values), statistics.median(values[-fifth:])
