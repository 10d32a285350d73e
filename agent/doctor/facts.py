"""What the doctor looks at, gathered once; the checks themselves read nothing."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from agent.config.settings import Settings
from agent.host.cgroups import Cgroups
from agent.host.collector import NothingHereError
from agent.host.files import Tree
from agent.host.pci import nvidia_bus_ids
from agent.host.pid_namespace import host_pids_visible
from agent.host.system import Hypervisor
from agent.liveness import is_contained
from agent.model.probe import ProbeRecord
from agent.model.text import clean_label
from agent.nvml.source import GpuReading

_INJECTED: Final = ("NVIDIA_VISIBLE_DEVICES", "NVIDIA_DRIVER_CAPABILITIES", "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")
_MODULE: Final = "driver/nvidia/version"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The machine as the doctor found it; None where it could not be read."""

    reading: GpuReading
    pci_bus_ids: tuple[str, ...]
    kernel_module: str | None
    """First line of the driver's own version file; None while the kernel module is not loaded."""
    device_nodes: Mapping[str, bool]
    """The driver's files in /dev, and whether this user may open each."""
    shm_bytes: int | None
    contained: bool
    injected: Mapping[str, str]
    """What a container runtime, or the user, set for CUDA."""
    host_pids: bool
    cpu_quota_cores: float | None
    memory_limit_bytes: int | None
    cores: int
    hypervisor: str
    probe: ProbeRecord | None
    """A small product through TensorFlow, on a card where one is idle, else on the CPU; None where not tried."""


def gather(
    settings: Settings,
    environ: Mapping[str, str],
    reading: GpuReading,
    probe: ProbeRecord | None,
    dev: Path = Path("/dev"),
) -> Facts:
    """Read the host beside what the driver and a probe already said."""
    proc, sys = Tree(settings.host.proc_root), Tree(settings.host.sys_root)
    cgroups = Cgroups(sys, Tree("/sys"))
    membership = proc.read_or_none("self/cgroup") or ""
    quota = cgroups.cpu_quota(membership)
    module = proc.read_or_none(_MODULE)
    return Facts(
        reading=reading,
        pci_bus_ids=nvidia_bus_ids(sys),
        kernel_module=clean_label(module.splitlines()[0], 200) if module else None,
        device_nodes={path.name: os.access(path, os.R_OK | os.W_OK) for path in sorted(dev.glob("nvidia*"))},
        shm_bytes=_size_bytes(dev / "shm"),
        contained=is_contained(environ),
        injected={name: environ[name] for name in _INJECTED if name in environ},
        host_pids=settings.probe.trust_pids == "yes" or host_pids_visible(proc),
        cpu_quota_cores=quota.cores if quota else None,
        memory_limit_bytes=cgroups.memory_limit_bytes(membership),
        cores=len(os.sched_getaffinity(0)),
        hypervisor=_hypervisor(proc, sys),
        probe=probe,
    )


def _size_bytes(path: Path) -> int | None:
    try:
        status = os.statvfs(path)
    except OSError:
        return None
    return status.f_blocks * status.f_frsize


def _hypervisor(proc: Tree, sys: Tree) -> str:
    try:
        return " ".join(filter(None, Hypervisor(proc, sys).collect()[0].labels))
    except (NothingHereError, OSError):
        return ""
