"""Pressure: time that tasks were stalled for want of CPU, I/O or memory."""

import errno
from typing import Final

from agent.host.collector import NothingHereError
from agent.host.fields import pressure_s
from agent.host.files import Tree
from agent.model.metrics import Metric, Sample

_RESOURCES: Final = ("cpu", "io", "memory")


class Pressure:
    """Reads /proc/pressure."""

    name: Final = "pressure"
    metrics: Final = (
        Metric(
            "heatsoak_host_pressure_seconds_total",
            "Time in which some task, or all tasks (full), waited for the resource.",
            "counter",
            ("resource", "stall"),
        ),
    )

    def __init__(self, proc: Tree) -> None:
        """Take the host's /proc."""
        self._proc = proc

    def collect(self) -> list[Sample]:
        """Return the stalls of each resource.

        Raises:
            NothingHereError: the kernel does not account for pressure.
        """
        try:
            texts = {resource: self._proc.read(f"pressure/{resource}") for resource in _RESOURCES}
        except OSError as error:
            if error.errno not in {errno.ENOENT, errno.EOPNOTSUPP}:
                raise
            wanted = "CONFIG_PSI in the kernel, and psi=1 on its command line"
            raise NothingHereError(f"no pressure figures ({error.strerror}): they want {wanted}") from error
        return [
            Sample("heatsoak_host_pressure_seconds_total", value_s, (resource, stall))
            for resource, text in texts.items()
            for stall, value_s in pressure_s(text).items()
            if (resource, stall) != ("cpu", "full")  # undefined for a whole machine
        ]
