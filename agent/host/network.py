"""Network I/O by device."""

import re
from typing import Final

from agent.host.collector import NothingHereError
from agent.host.files import Tree
from agent.host.pid_namespace import is_confined
from agent.model.metrics import Metric, Sample
from agent.model.text import clean_label

_COLUMNS: Final = (
    ("heatsoak_host_network_receive_bytes_total", 0),
    ("heatsoak_host_network_receive_errors_total", 2),
    ("heatsoak_host_network_receive_drops_total", 3),
    ("heatsoak_host_network_transmit_bytes_total", 8),
    ("heatsoak_host_network_transmit_errors_total", 10),
    ("heatsoak_host_network_transmit_drops_total", 11),
)


class Network:
    """Reads net/dev of the machine's first process: its network is the host's, also from within a pod."""

    name: Final = "network"
    metrics: Final = (
        Metric("heatsoak_host_network_receive_bytes_total", "Bytes received.", "counter", ("device",)),
        Metric("heatsoak_host_network_receive_errors_total", "Errors in receiving.", "counter", ("device",)),
        Metric("heatsoak_host_network_receive_drops_total", "Received packets dropped.", "counter", ("device",)),
        Metric("heatsoak_host_network_transmit_bytes_total", "Bytes sent.", "counter", ("device",)),
        Metric("heatsoak_host_network_transmit_errors_total", "Errors in sending.", "counter", ("device",)),
        Metric("heatsoak_host_network_transmit_drops_total", "Packets to send dropped.", "counter", ("device",)),
    )

    def __init__(self, proc: Tree, exclude: str) -> None:
        """Take the host's /proc and a regular expression of device names to leave out."""
        self._proc = proc
        self._exclude = re.compile(exclude)

    def collect(self) -> list[Sample]:
        """Return all counters of each device.

        Raises:
            NothingHereError: there is no device, or those seen may be a container's own.
        """
        if is_confined(self._proc):
            namespace = self._proc.link("self/ns/pid")
            raise NothingHereError(f"this is {namespace}, not the host's: whose network it has cannot be known")
        text = self._proc.read_or_none("1/net/dev") or self._proc.read("net/dev")
        samples: list[Sample] = []
        for line in text.splitlines()[2:]:
            device, _, counters = line.rpartition(":")
            device = device.strip()
            if self._exclude.search(device):
                continue
            values = counters.split()
            labels = (clean_label(device),)
            samples += [Sample(name, int(values[column]), labels) for name, column in _COLUMNS]
        if not samples:
            raise NothingHereError(f"no device but those that host.network_exclude leaves out: {self._exclude.pattern}")
        return samples
