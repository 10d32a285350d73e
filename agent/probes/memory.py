"""Whether the host would hold a probe child, and whether the kernel killed one for lack of memory."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from agent.model.probe import DeviceKind, ProbeName, ProbeRequest

_MEBIBYTE = 1024 * 1024
NEEDED_MIB: Final[Mapping[ProbeName, float]] = MappingProxyType(
    {
        "matmul": 3072.0,
        "resnet50": 3072.0,
        "memory": 3072.0,
        "pipeline": 3072.0,
        "vgg16": 7168.0,
        "bandwidth": 7168.0,
        "fill": 7168.0,
    }
)
"""MiB of host memory a child with one card needs for each probe: what children were measured to take on an H200 at
most, and 15 % or more (docs/benchmarks.md). What shared a child bears that child's peak."""
NEEDED_LARGE_MIB: Final = 5120.0
"""The same for products above 8192, and for what XLA compiles."""
LARGEST_USUAL_SIDE: Final = 8192
NEEDED_ON_CPU_MIB: Final = 1536.0
"""The same for the small shapes that a CPU is measured with."""


class HostRoots(msgspec.Struct, frozen=True):
    """Where the kernel's files are."""

    proc: Path = Path("/proc")
    cgroup: Path = Path("/sys/fs/cgroup")


class _Level(msgspec.Struct, frozen=True):
    """One memory cgroup directory and what the kernel's version calls its files."""

    directory: Path
    limit: str
    usage: str
    events: str
    cache: tuple[str, ...]


def available_bytes(roots: HostRoots = HostRoots()) -> int | None:  # noqa: B008 - frozen
    """Return how much memory a new process may still take here; None where the kernel does not say.

    The least of what the host has left and what each memory cgroup above this process has left, file
    cache counted as free: the libraries that the last child read are given back for the next.
    """
    left = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        left.append(_numbers(roots.proc / "meminfo")["MemAvailable"] * 1024)
    for level in _levels(roots):
        with contextlib.suppress(OSError, ValueError):
            limit = int((level.directory / level.limit).read_text(encoding="ascii"))
            usage = int((level.directory / level.usage).read_text(encoding="ascii"))
            statistics = _numbers(level.directory / "memory.stat")
            cache = sum(statistics.get(name, 0) for name in level.cache)
            left.append(max(0, limit - usage + cache))
    return min(left, default=None)


def needed_mib(requests: Iterable[ProbeRequest], device: DeviceKind, configured_mib: float) -> float:
    """Return how much host memory one child with these requests needs; ``configured_mib`` where it is not negative."""
    if configured_mib >= 0:
        return configured_mib
    return max((_needed_mib(request, device) for request in requests), default=0.0)


def _needed_mib(request: ProbeRequest, device: DeviceKind) -> float:
    if device == "cpu" and request.probe != "fill":
        return NEEDED_ON_CPU_MIB
    large = request.mode == "xla" or (request.probe == "matmul" and request.size > LARGEST_USUAL_SIDE)
    return max(NEEDED_MIB[request.probe], NEEDED_LARGE_MIB if large else 0.0)


def why_not_host(needed_mib: float, roots: HostRoots = HostRoots()) -> str | None:  # noqa: B008 - frozen
    """Return ``host_memory`` where less than ``needed_mib`` MiB are left for a child; None where there is enough."""
    left_bytes = available_bytes(roots)
    return "host_memory" if left_bytes is not None and left_bytes < needed_mib * _MEBIBYTE else None


def oom_kills(roots: HostRoots = HostRoots()) -> int:  # noqa: B008 - frozen
    """Return how many processes the kernel has killed for lack of memory, in this host and in this cgroup."""
    files = [roots.proc / "vmstat", *(level.directory / level.events for level in list(_levels(roots))[:1])]
    total = 0
    for file in files:
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += _numbers(file).get("oom_kill", 0)
    return total


def _levels(roots: HostRoots) -> Iterator[_Level]:
    """Yield the memory cgroups this process is in, innermost first; unlimited ones among them.

    In a container the path may be the host's and not exist below the mount; the mount itself is then the
    container's own level.
    """
    try:
        lines = (roots.proc / "self/cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            base, names = roots.cgroup, ("memory.max", "memory.current", "memory.events")
            cache = ("active_file", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control")
            cache = ("total_active_file", "total_inactive_file")
            base = roots.cgroup / "memory"
        else:
            continue
        directory = base / path.lstrip("/")
        for level in (directory, *directory.parents):
            yield _Level(level, *names, cache)
            if level == base:
                break


def _numbers(file: Path) -> dict[str, int]:
    """Return the numbers of a file of lines of a name and a number."""
    rows = (line.replace(":", " ").split() for line in file.read_text(encoding="ascii").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1}
