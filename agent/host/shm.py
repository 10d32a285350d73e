"""Shared memory: how large /dev/shm is, and how full."""

import os
from typing import Final

from agent.host.collector import NothingHereError
from agent.model.metrics import Metric, Sample


class SharedMemory:
    """Asks the tmpfs on /dev/shm, which never blocks; in a pod it is the pod's own."""

    name: Final = "shm"
    metrics: Final = (
        Metric("heatsoak_host_shm_size_bytes", "Size of /dev/shm.", "gauge"),
        Metric("heatsoak_host_shm_used_bytes", "Bytes used in /dev/shm.", "gauge"),
    )

    def __init__(self, path: str = "/dev/shm") -> None:  # noqa: S108 - asked for its size, nothing is written
        """Take the directory."""
        self._path = path

    def collect(self) -> list[Sample]:
        """Return size and use.

        Raises:
            NothingHereError: there is no such directory.
        """
        try:
            state = os.statvfs(self._path)
        except FileNotFoundError as error:
            raise NothingHereError(f"no {self._path}") from error
        size_bytes = state.f_blocks * state.f_frsize
        free_bytes = state.f_bfree * state.f_frsize
        return [
            Sample("heatsoak_host_shm_size_bytes", size_bytes),
            Sample("heatsoak_host_shm_used_bytes", size_bytes - free_bytes),
        ]
