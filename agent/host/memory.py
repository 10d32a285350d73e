"""Memory and swap."""

import os
import re
from typing import Final

from agent.host.collector import NothingHereError
from agent.host.fields import keyed_numbers
from agent.host.files import Tree
from agent.model.metrics import Metric, Sample

_KIB: Final = 1024
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_SWAPPED = re.compile(r"^pswp(in|out) (\d+)$", re.MULTILINE)


class Memory:
    """Reads /proc/meminfo."""

    name: Final = "memory"
    metrics: Final = (
        Metric("heatsoak_host_memory_total_bytes", "Memory the kernel manages.", "gauge"),
        Metric("heatsoak_host_memory_available_bytes", "Memory that programs can have without swapping.", "gauge"),
        Metric("heatsoak_host_memory_free_bytes", "Memory that nothing uses.", "gauge"),
        Metric("heatsoak_host_memory_buffers_bytes", "Memory of block device buffers.", "gauge"),
        Metric("heatsoak_host_memory_cached_bytes", "Memory of the page cache, tmpfs included.", "gauge"),
    )
    _fields: Final = ("MemTotal", "MemAvailable", "MemFree", "Buffers", "Cached")

    def __init__(self, proc: Tree) -> None:
        """Take the host's /proc."""
        self._proc = proc

    def collect(self) -> list[Sample]:
        """Return one sample a metric."""
        kib = keyed_numbers(self._proc.read("meminfo"))
        return [
            Sample(metric.name, kib[field] * _KIB) for metric, field in zip(self.metrics, self._fields, strict=True)
        ]


class Swap:
    """Reads /proc/meminfo and /proc/vmstat."""

    name: Final = "swap"
    metrics: Final = (
        Metric("heatsoak_host_swap_total_bytes", "Swap space.", "gauge"),
        Metric("heatsoak_host_swap_free_bytes", "Swap space that nothing uses.", "gauge"),
        Metric("heatsoak_host_swap_in_bytes_total", "Bytes read back from swap.", "counter"),
        Metric("heatsoak_host_swap_out_bytes_total", "Bytes written to swap.", "counter"),
    )

    def __init__(self, proc: Tree) -> None:
        """Take the host's /proc."""
        self._proc = proc

    def collect(self) -> list[Sample]:
        """Return one sample a metric.

        Raises:
            NothingHereError: the kernel was built without swap.
        """
        kib = keyed_numbers(self._proc.read("meminfo"))
        pages = dict(_SWAPPED.findall(self._proc.read("vmstat")))
        if "SwapTotal" not in kib or not pages:
            raise NothingHereError(f"no swap in this kernel ({os.uname().release}): it wants CONFIG_SWAP")
        values_bytes = (
            kib["SwapTotal"] * _KIB,
            kib["SwapFree"] * _KIB,
            int(pages["in"]) * _PAGE_BYTES,
            int(pages["out"]) * _PAGE_BYTES,
        )
        return [Sample(metric.name, value) for metric, value in zip(self.metrics, values_bytes, strict=True)]
