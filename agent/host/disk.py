"""Disk I/O by device, whole disks only."""

import re
from collections.abc import Collection
from typing import Final

from agent.host.collector import NothingHereError
from agent.host.files import Tree
from agent.model.metrics import Metric, Sample
from agent.model.text import clean_label

_SECTOR_BYTES: Final = 512  # in diskstats always, whatever the disk has
_COLUMNS: Final = (
    ("heatsoak_host_disk_reads_total", 3, 1.0),
    ("heatsoak_host_disk_read_bytes_total", 5, _SECTOR_BYTES),
    ("heatsoak_host_disk_writes_total", 7, 1.0),
    ("heatsoak_host_disk_written_bytes_total", 9, _SECTOR_BYTES),
    ("heatsoak_host_disk_io_time_seconds_total", 12, 1e-3),
)


class Disk:
    """Reads /proc/diskstats."""

    name: Final = "disk"
    metrics: Final = (
        Metric("heatsoak_host_disk_reads_total", "Reads that completed.", "counter", ("device",)),
        Metric("heatsoak_host_disk_read_bytes_total", "Bytes read.", "counter", ("device",)),
        Metric("heatsoak_host_disk_writes_total", "Writes that completed.", "counter", ("device",)),
        Metric("heatsoak_host_disk_written_bytes_total", "Bytes written.", "counter", ("device",)),
        Metric("heatsoak_host_disk_io_time_seconds_total", "Time with I/O in flight.", "counter", ("device",)),
    )

    def __init__(self, proc: Tree, sys: Tree, exclude: str) -> None:
        """Take the host's trees and a regular expression of device names to leave out."""
        self._proc = proc
        self._sys = sys
        self._exclude = re.compile(exclude)

    def collect(self) -> list[Sample]:
        """Return all counters of each disk.

        Raises:
            NothingHereError: there is no disk.
        """
        whole = self._whole_disks()
        samples: list[Sample] = []
        for line in self._proc.read("diskstats").splitlines():
            fields = line.split()
            device = fields[2]
            if self._exclude.search(device) or (whole is not None and device not in whole):
                continue
            labels = (clean_label(device),)
            samples += [Sample(name, int(fields[column]) * scale, labels) for name, column, scale in _COLUMNS]
        if not samples:
            raise NothingHereError(f"no disk but those that host.disk_exclude leaves out: {self._exclude.pattern}")
        return samples

    def _whole_disks(self) -> Collection[str] | None:
        """Return the disks that are no partitions; None where /sys does not say."""
        try:
            return {name.replace("!", "/") for name in self._sys.names("block")}
        except OSError:
            return None
