"""What the control groups around the agent allow: in a pod, the pod's limits."""

import re
from typing import Final

from agent.host.cgroups import Cgroups
from agent.host.collector import NothingHereError
from agent.host.files import Tree
from agent.model.metrics import Metric, Sample

_PATH = re.compile(r":[^:]*$", re.MULTILINE)


class Cgroup:
    """Reads the agent's own control groups; the tightest limit up the tree counts."""

    name: Final = "cgroup"
    metrics: Final = (
        Metric("heatsoak_host_cgroup_cpu_limit_cores", "Cores the CPU quota allows; absent without one.", "gauge"),
        Metric("heatsoak_host_cgroup_cpu_periods_total", "Periods of the CPU quota.", "counter"),
        Metric(
            "heatsoak_host_cgroup_cpu_throttled_periods_total", "Periods in which the CPU quota ran out.", "counter"
        ),
        Metric("heatsoak_host_cgroup_cpu_throttled_seconds_total", "Time that tasks waited for quota.", "counter"),
        Metric("heatsoak_host_cgroup_memory_limit_bytes", "Memory limit; absent without one.", "gauge"),
        Metric("heatsoak_host_cgroup_memory_used_bytes", "Memory in use, page cache included.", "gauge"),
    )

    def __init__(self, proc: Tree, cgroups: Cgroups) -> None:
        """Take the agent's /proc and the control groups."""
        self._proc = proc
        self._cgroups = cgroups

    def collect(self) -> list[Sample]:
        """Return limits and use, each where there is one.

        Raises:
            NothingHereError: no group limits or counts anything.
        """
        membership = self._proc.read("self/cgroup")
        if not self._cgroups.lineage(membership, "memory"):
            membership = _PATH.sub(":/", membership)  # a container of version 1: its mount is its group
        quota = self._cgroups.cpu_quota(membership)
        cpu = (quota.cores, quota.periods, quota.throttled_periods, quota.throttled_s) if quota else (None,) * 4
        memory = (self._cgroups.memory_limit_bytes(membership), self._cgroups.memory_used_bytes(membership))
        values = zip(self.metrics, (*cpu, *memory), strict=True)
        samples = [Sample(metric.name, value) for metric, value in values if value is not None]
        if not samples:
            raise NothingHereError(f"no limit and no count in the agent's control groups {membership.split()}")
        return samples
