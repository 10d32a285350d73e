"""What a host collector is, and how it says that there is nothing to collect."""

from typing import Protocol

from agent.errors import HeatsoakError
from agent.model.metrics import Metric, Sample


class Collector(Protocol):
    """Reads one thing about the host; holds no thread and calls nothing that may block."""

    @property
    def name(self) -> str:
        """Return its name in settings, health and logs."""

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return every metric it may give."""

    def collect(self) -> list[Sample]:
        """Return all samples or none: whatever is raised counts as failure of the whole.

        Raises:
            NothingHereError: this machine has no such thing, which is no failure.
        """


class NothingHereError(HeatsoakError):
    """The machine has nothing for the collector; the message says what is missing and how to have it."""


class NameTakenError(HeatsoakError):
    """Two collectors claim one name or one metric."""
