"""What a GPU process does with the CPU, memory and disks it may use."""

import msgspec


class CgroupReading(msgspec.Struct, frozen=True):
    """The control group of a process, counters since its creation; None where the kernel does not say."""

    quota_cores: float | None = None
    """Cores its CPU quota allows, the tightest of it and its ancestors; None without a quota."""
    periods: int | None = None
    throttled_periods: int | None = None
    """Enforcement periods so far, and those in which the quota ran out, of the group with that quota."""
    throttled_s: float | None = None
    cpu_pressure_s: float | None = None
    """Seconds in which some task of the group waited for a CPU."""
    io_pressure_s: float | None = None
    """Seconds in which some task of the group waited for a disk."""
    read_bytes: int | None = None
    """Bytes read from block devices."""


class ProcessReading(msgspec.Struct, frozen=True):
    """One process that holds a GPU, with its living descendants that hold none, at one moment."""

    pid: int
    started_s: float
    """Start time since boot: with ``pid`` it names the process for ever."""
    gpus: tuple[str, ...]
    """UUIDs of the cards it is on."""
    taken_monotonic_s: float
    cpu_s: float
    """User and system CPU seconds of the process, its descendants and those of them that ended."""
    allowed_cores: int
    """CPUs its affinity mask and cpuset let it run on."""
    threads: int = 1
    running_threads: int = 0
    """Threads running or runnable at this moment, descendants' included."""
    blocked_threads: int = 0
    """Threads in uninterruptible sleep, as on a disk, at this moment, descendants' included."""
    main_state: str = ""
    """State letter of the main thread, as in /proc/PID/stat."""
    busiest_thread_cpu_s: float | None = None
    """CPU seconds of the thread that has used most."""
    name: str = ""
    cgroup: CgroupReading = CgroupReading()


class HostCpuReading(msgspec.Struct, frozen=True):
    """The host's CPUs as a whole, beside the processes, at one moment."""

    taken_monotonic_s: float
    cores: int
    idle_s: float
    """Idle and I/O-wait CPU seconds, summed over the cores."""
    io_pressure_s: float | None = None


class ProcessReport(msgspec.Struct, frozen=True):
    """All GPU processes of one sweep; nothing here where process ids cannot be trusted."""

    host: HostCpuReading
    processes: tuple[ProcessReading, ...] = ()
