"""How busy the host's CPUs are with other work than the probe's own."""

from collections.abc import Sequence

import msgspec

from agent.host.cpu import CpuTimes
from agent.host.files import Tree
from agent.probes.child import cpu_s

_IDLE = ("idle", "iowait")


class HostUse(msgspec.Struct, frozen=True):
    """CPU time since boot, over all CPUs, as of one moment."""

    others_s: float
    """Spent working, on anything but the probe child; time that a hypervisor took counts."""
    total_s: float
    """Spent in any way, idle included."""


def read_host_use(pid: int, proc: Tree) -> HostUse | None:
    """Return the CPU time until now, that of the child ``pid`` apart; None where the kernel does not say."""
    own_s = cpu_s(pid, proc)
    try:
        seconds = CpuTimes(proc.read("stat")).seconds
    except (OSError, ValueError):
        return None
    total_s = sum(seconds.values())
    idle_s = sum(seconds.get(mode, 0.0) for mode in _IDLE)
    return None if own_s is None else HostUse(total_s - idle_s - own_s, total_s)


def others_share(uses: Sequence[HostUse]) -> float | None:
    """Return the share of all CPU time from the first to the last use that others took, 0 to 1.

    None where that is no time at all.
    """
    if not uses or uses[-1].total_s <= uses[0].total_s:
        return None
    share = (uses[-1].others_s - uses[0].others_s) / (uses[-1].total_s - uses[0].total_s)
    return min(1.0, max(0.0, share))
