"""How long to leave the probes alone after their software turned out broken."""

from collections.abc import Sequence
from typing import Final

from agent.model.probe import ProbeResult
from agent.probes.outcome import ENVIRONMENT_REASONS

MOST_S: Final = 6 * 3600.0
_SHADE: Final = 0.85
"""A little less than the full wait, so that jitter does not make the run due then miss it."""


class EnvironmentBackoff:
    """Doubles from one schedule interval to six hours while every run meets a broken environment."""

    def __init__(self, interval_s: float) -> None:
        """Start with nothing known; ``interval_s`` is the schedule's."""
        self._interval_s = interval_s
        self._wait_s = 0.0
        self._until_s = 0.0
        self.reason = ""
        """What is broken, with its value after a colon; empty while nothing is known to be."""

    def holds(self, now_s: float) -> bool:
        """Return whether it is too early for another try."""
        return bool(self.reason) and now_s < self._until_s

    def learn(self, results: Sequence[ProbeResult], now_s: float) -> None:
        """Take the results of one run: any value clears the trouble, none and a broken environment keep it.

        What says nothing about the environment, as a timeout or a tenant's arrival, changes nothing.
        """
        if any(result.status in ("ok", "wrong_answer") for result in results):
            self._wait_s = self._until_s = 0.0
            self.reason = ""
            return
        for result in results:
            if result.status == "error" and result.reason.partition(":")[0] in ENVIRONMENT_REASONS:
                self.reason = result.reason
                self._wait_s = min(MOST_S, max(self._interval_s, 2 * self._wait_s))
                self._until_s = now_s + _SHADE * self._wait_s
                return
