"""Control groups of version 1, 2 and both at once: which a process is in, and what they allow."""

import posixpath
from collections.abc import Iterator
from typing import Final

import msgspec

from agent.host.fields import keyed_numbers, pressure_s
from agent.host.files import Tree
from agent.model.process import CgroupReading

_MOUNT: Final = "fs/cgroup"
_V1_UNLIMITED_BYTES: Final = 1 << 62


class Group(msgspec.Struct, frozen=True):
    """One control group for one controller: its directory under /sys, and whether it is of version 2."""

    path: str
    unified: bool


class CpuQuota(msgspec.Struct, frozen=True):
    """The tightest CPU quota of a process and how often it ran out, in the group that sets it."""

    cores: float
    periods: int
    throttled_periods: int
    throttled_s: float


class Cgroups:
    """Finds and reads control groups; what a kernel does not offer is None."""

    def __init__(self, sys: Tree, own_sys: Tree) -> None:
        """Take the host's /sys and the agent's own, which in a container shows less of it."""
        self._sys = sys
        self._own_sys = own_sys
        self._namespaces: dict[str, str] = {}

    def lineage(self, membership: str, controller: str) -> tuple[Group, ...]:
        """Return a process's group for ``controller`` and the groups around it, outermost last.

        ``membership`` is the text of its /proc/PID/cgroup. Empty where the group is not under the mount.
        """
        version2 = ""
        for line in membership.splitlines():
            hierarchy, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if controller in controllers.split(","):
                return tuple(self._upward(f"{_MOUNT}/{controller}", path, unified=False))
            if hierarchy == "0":
                version2 = path
        if not version2:
            return ()
        hybrid = f"{_MOUNT}/unified"
        mount = hybrid if self._sys.has_directory(hybrid) else _MOUNT
        path = posixpath.normpath(f"{self._namespace(mount)}{version2}").strip("/")
        return tuple(self._upward(mount, f"/{path}", unified=True))

    def cpu_quota(self, membership: str) -> CpuQuota | None:
        """Return the tightest CPU quota that holds for a process; None without one."""
        quotas = [
            (cores, group)
            for group in self.lineage(membership, "cpu")
            if (cores := self._quota_cores(group)) is not None
        ]
        if not quotas:
            return None
        cores, group = min(quotas, key=lambda quota: quota[0])
        stat = keyed_numbers(self._sys.read_or_none(f"{group.path}/cpu.stat") or "")
        throttled_s = stat.get("throttled_usec", 0) / 1e6 if group.unified else stat.get("throttled_time", 0) / 1e9
        return CpuQuota(cores, stat.get("nr_periods", 0), stat.get("nr_throttled", 0), throttled_s)

    def memory_limit_bytes(self, membership: str) -> int | None:
        """Return the tightest memory limit that holds for a process; None without one."""
        limits = (self._memory_limit_bytes(group) for group in self.lineage(membership, "memory"))
        return min((limit for limit in limits if limit is not None), default=None)

    def memory_used_bytes(self, membership: str) -> int | None:
        """Return what the process's group has in use, page cache included; None where it is not counted."""
        for group in self.lineage(membership, "memory")[:1]:
            return self._number(group, "memory.current" if group.unified else "memory.usage_in_bytes")
        return None

    def reading(self, membership: str) -> CgroupReading:
        """Return all that is known of a process's groups."""
        quota = self.cpu_quota(membership)
        return CgroupReading(
            quota_cores=quota.cores if quota else None,
            periods=quota.periods if quota else None,
            throttled_periods=quota.throttled_periods if quota else None,
            throttled_s=quota.throttled_s if quota else None,
            cpu_pressure_s=self._pressure_s(membership, "cpu"),
            io_pressure_s=self._pressure_s(membership, "io"),
            read_bytes=self._read_bytes(membership),
        )

    def _namespace(self, mount: str) -> str:
        """Return the group that version 2 paths are relative to: in a container its own, as ``/kubepods/x``."""
        if mount not in self._namespaces:
            own = self._own_sys.inode(mount)
            self._namespaces[mount] = "" if own is None else self._sys.find_directory(mount, own) or ""
        return self._namespaces[mount]

    def _upward(self, mount: str, path: str, *, unified: bool) -> Iterator[Group]:
        path = path.rstrip("/")
        if ".." in path.split("/") or not self._sys.has_directory(mount + path):
            return
        while path:
            yield Group(mount + path, unified)
            path = path.rpartition("/")[0]
        yield Group(mount, unified)

    def _quota_cores(self, group: Group) -> float | None:
        if group.unified:
            quota, _, period = (self._sys.read_or_none(f"{group.path}/cpu.max") or "max").partition(" ")
            return None if quota.strip() == "max" else int(quota) / int(period)
        quota_us = self._number(group, "cpu.cfs_quota_us")
        period_us = self._number(group, "cpu.cfs_period_us")
        return quota_us / period_us if quota_us and period_us and quota_us > 0 else None

    def _memory_limit_bytes(self, group: Group) -> int | None:
        limit = self._number(group, "memory.max" if group.unified else "memory.limit_in_bytes")
        return None if limit is None or limit >= _V1_UNLIMITED_BYTES else limit

    def _number(self, group: Group, name: str) -> int | None:
        text = (self._sys.read_or_none(f"{group.path}/{name}") or "max").strip()
        return None if text == "max" else int(text)

    def _pressure_s(self, membership: str, resource: str) -> float | None:
        for group in self.lineage(membership, resource)[:1]:
            text = self._sys.read_or_none(f"{group.path}/{resource}.pressure")
            return pressure_s(text)["some"] if text else None
        return None

    def _read_bytes(self, membership: str) -> int | None:
        for group in self.lineage(membership, "io")[:1]:
            text = self._sys.read_or_none(f"{group.path}/io.stat")
            return _sum_read_bytes(text) if text else None
        for group in self.lineage(membership, "blkio")[:1]:
            text = self._sys.read_or_none(f"{group.path}/blkio.throttle.io_service_bytes")
            return sum(int(line.split()[2]) for line in text.splitlines() if " Read " in line) if text else None
        return None


def _sum_read_bytes(io_stat: str) -> int:
    pairs = (pair.partition("=") for pair in io_stat.split() if pair.startswith("rbytes="))
    return sum(int(value) for _, _, value in pairs)
