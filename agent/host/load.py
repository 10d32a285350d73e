"""Load averages."""

from typing import Final

from agent.host.files import Tree
from agent.model.metrics import Metric, Sample


class Load:
    """Reads /proc/loadavg."""

    name: Final = "load"
    metrics: Final = (
        Metric("heatsoak_host_load1", "Tasks running or in uninterruptible sleep, averaged over 1 minute.", "gauge"),
        Metric("heatsoak_host_load5", "Tasks running or in uninterruptible sleep, averaged over 5 minutes.", "gauge"),
        Metric("heatsoak_host_load15", "Tasks running or in uninterruptible sleep, averaged over 15 minutes.", "gauge"),
    )

    def __init__(self, proc: Tree) -> None:
        """Take the host's /proc."""
        self._proc = proc

    def collect(self) -> list[Sample]:
        """Return the three averages."""
        averages = self._proc.read("loadavg").split()[:3]
        return [Sample(metric.name, float(average)) for metric, average in zip(self.metrics, averages, strict=True)]
