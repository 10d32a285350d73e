"""How long to leave the probes alone after their software turned out broken."""

from collections.abc import Sequence
from typing import Final

import msgspec

from agent.model.probe import ProbeResult
from agent.probes.outcome import ENVIRONMENT_REASONS

MOST_S: Final = 6 * 3600.0
_SHADE: Final = 0.85
"""A little less than the full wait, so that jitter does not make the run due then miss it."""


class _Device(msgspec.Struct, frozen=True):
    """What the last run on one device met; no reason where it met no trouble of the environment."""

    reason: str = ""
    wait_s: float = 0.0
    until_s: float = 0.0


class EnvironmentBackoff:
    """Doubles, for each device, from one schedule interval to six hours while runs meet a broken environment.

    Kept apart by device: a sick card may look like a broken environment, and must not keep its neighbours
    from being probed.
    """

    def __init__(self, interval_s: float) -> None:
        """Start with nothing known; ``interval_s`` is the schedule's."""
        self._interval_s = interval_s
        self._devices: dict[str, _Device] = {}

    @property
    def reason(self) -> str:
        """What is broken, with its value after a colon; empty unless it is on every device that was tried."""
        reasons = [device.reason for device in list(self._devices.values())]
        return reasons[-1] if reasons and all(reasons) else ""

    def holds(self, uuid: str, now_s: float) -> bool:
        """Return whether it is too early for another try on a device."""
        return now_s < self._devices.get(uuid, _Device()).until_s

    def learn(self, uuid: str, results: Sequence[ProbeResult], now_s: float) -> None:
        """Take the results of one run: any value clears the trouble, none and a broken environment keep it.

        What says nothing about the environment, as a timeout or a tenant's arrival, changes nothing.
        """
        if any(result.status in ("ok", "wrong_answer") for result in results):
            self._devices[uuid] = _Device()
            return
        for result in results:
            if result.status == "error" and result.reason.partition(":")[0] in ENVIRONMENT_REASONS:
                wait_s = min(MOST_S, max(self._interval_s, 2 * self._devices.get(uuid, _Device()).wait_s))
                self._devices[uuid] = _Device(result.reason, wait_s, now_s + _SHADE * wait_s)
                return
