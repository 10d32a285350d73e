"""CPU time by mode, summed over all CPUs, and how many are online."""

import os
from typing import Final

from agent.host.files import Tree
from agent.model.metrics import Metric, Sample

TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_MODES: Final = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_RUN_BACK_S: Final = 60.0


class CpuTimes:
    """The first lines of /proc/stat, understood."""

    def __init__(self, text: str) -> None:
        """Take the text of /proc/stat.

        Raises:
            ValueError: it does not begin with the summed times.
        """
        lines = text.splitlines()
        head, *ticks = lines[0].split() if lines else ("",)
        if head != "cpu" or len(ticks) < 4:
            raise ValueError(f"/proc/stat begins with {lines[:1]!r}, not with the line cpu")
        self.seconds = {mode: int(value) / TICKS_PER_S for mode, value in zip(_MODES, ticks, strict=False)}
        """CPU seconds since boot by mode; kernels before 2.6.11 know fewer modes."""
        self.online = sum(line.startswith("cpu") for line in lines[1:])
        self.boot_wall_s = next((float(line.split()[1]) for line in lines if line.startswith("btime ")), None)


class Cpu:
    """Reads /proc/stat."""

    name: Final = "cpu"
    metrics: Final = (
        Metric("heatsoak_host_cpu_seconds_total", "CPU time since boot by mode, over all CPUs.", "counter", ("mode",)),
        Metric("heatsoak_host_cpus", "CPUs online.", "gauge"),
        Metric("heatsoak_host_boot_time_seconds", "When the kernel started.", "gauge"),
    )

    def __init__(self, proc: Tree) -> None:
        """Take the host's /proc."""
        self._proc = proc
        self._seconds: dict[str, float] = {}

    def collect(self) -> list[Sample]:
        """Return times, count of CPUs and boot time."""
        times = CpuTimes(self._proc.read("stat"))
        self._seconds = {mode: self._held(mode, value_s) for mode, value_s in times.seconds.items()}
        samples = [
            Sample("heatsoak_host_cpu_seconds_total", value_s, (mode,)) for mode, value_s in self._seconds.items()
        ]
        samples.append(Sample("heatsoak_host_cpus", times.online))
        if times.boot_wall_s is not None:
            samples.append(Sample("heatsoak_host_boot_time_seconds", times.boot_wall_s))
        return samples

    def _held(self, mode: str, value_s: float) -> float:
        """Return the value, or the last one where it ran back a little: idle and iowait do, see proc(5)."""
        last_s = self._seconds.get(mode, 0.0)
        return last_s if 0.0 < last_s - value_s < _RUN_BACK_S else value_s
