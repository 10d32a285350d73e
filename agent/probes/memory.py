"""Whether the host would hold a probe child, and whether the kernel killed one for lack of memory."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

_MEBIBYTE = 1024 * 1024


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
    reclaimable: str


def available_bytes(roots: HostRoots = HostRoots()) -> int | None:  # noqa: B008 - frozen
    """Return how much memory a new process may still take here; None where the kernel does not say.

    The least of what the host has left and what each memory cgroup above this process has left, file
    cache that would be given back counted as free.
    """
    left = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        left.append(_numbers(roots.proc / "meminfo")["MemAvailable"] * 1024)
    for level in _levels(roots):
        with contextlib.suppress(OSError, ValueError):
            limit = int((level.directory / level.limit).read_text(encoding="ascii"))
            usage = int((level.directory / level.usage).read_text(encoding="ascii"))
            cache = _numbers(level.directory / "memory.stat").get(level.reclaimable, 0)
            left.append(max(0, limit - usage + cache))
    return min(left, default=None)


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
            base, names = roots.cgroup, ("memory.max", "memory.current", "memory.events", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control", "total_inactive_file")
            base = roots.cgroup / "memory"
        else:
            continue
        directory = base / path.lstrip("/")
        for level in (directory, *directory.parents):
            yield _Level(level, *names)
            if level == base:
                break


def _numbers(file: Path) -> dict[str, int]:
    """Return the numbers of a file of lines of a name and a number."""
    rows = (line.replace(":", " ").split() for line in file.read_text(encoding="ascii").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1}
