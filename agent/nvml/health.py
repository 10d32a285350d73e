"""What the agent says about the driver and its reader: counts, and one log line a transition."""

from collections.abc import Mapping
from typing import Final

import structlog

from agent.model.snapshot import CollectorHealth
from agent.nvml import advice

COLLECTOR: Final = "nvml"
REASONS: Final = ("hung", "crashed", "bad_answer", "init_failed", "cannot_start", "call_failed", "gpu_lost")
"""Every reason for which reading the cards may fail."""
_REPLACED: Final = ("hung", "crashed", "bad_answer")
_QUIET: Final = (advice.STARTING, advice.PAUSED, advice.DISABLED)

_log = structlog.get_logger("nvml")


class HealthLog:
    """Counts sweeps and failures, and logs when the driver goes down or comes back."""

    def __init__(self) -> None:
        self.restarts = 0
        """How often a child had to be replaced."""
        self._attempts = 0
        self._errors = dict.fromkeys(REASONS, 0)
        self._last_success_wall_s: float | None = None
        self._duration_s: float | None = None
        self._ok: bool | None = None
        self._told = advice.STARTING

    def asked(self) -> None:
        """Count a sweep that was asked for."""
        self._attempts += 1

    def swept(self, duration_s: float, wall_s: float) -> None:
        """Count a sweep that was answered."""
        self._ok = True
        self._duration_s = duration_s
        self._last_success_wall_s = wall_s

    def failed(self, reason: str, count: int = 1) -> None:
        """Count failures."""
        self._errors[reason] += count
        if reason in _REPLACED:
            self.restarts += count
        if reason not in ("call_failed", "gpu_lost"):
            self._ok = False

    def tell(self, error: str, driver: str) -> None:
        """Log that the driver went down, came back, or is down for another reason."""
        if error == self._told:
            return
        self._told = error
        if not error:
            _log.info("nvml_up", driver=driver)
        elif error in _QUIET:
            _log.info("nvml_idle", reason=error)
        elif error == advice.MISMATCH:
            _log.error("nvml_down", error=error, likely_cause=advice.advice(error))
        else:
            _log.warning("nvml_down", error=error, likely_cause=advice.advice(error))

    def collector(self) -> CollectorHealth:
        """Return how the reading of cards fares as a collector."""
        errors: Mapping[str, int] = dict(self._errors)
        return CollectorHealth(COLLECTOR, self._attempts, self._ok, self._last_success_wall_s, self._duration_s, errors)
