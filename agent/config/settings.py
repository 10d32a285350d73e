"""Every setting, its default and its meaning; the sample file and the docs are made from this module."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from agent.model.verdict import RuleMode
from agent.model.vocabulary import HostCollector

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
RESTART: Final = Meta(extra={"restart": True})
"""Marks a setting that a reload cannot change."""


class NodeSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where this machine stands."""

    name: str = ""
    """Node name on the info metrics; the host name where empty."""
    rack: str = ""
    """Rack of this machine, as your inventory writes it."""
    position: str = ""
    """Position in the rack, as your inventory writes it."""
    expected_gpus: Annotated[int, Meta(ge=-1)] = -1
    """How many cards this machine should have; -1 learns it from the PCI bus and the inventory."""


class AgentSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The agent's own loop."""

    tick_s: Annotated[float, Meta(ge=0.05, le=60), RESTART] = 1.0
    """Seconds between two ticks."""
    state_dir: Annotated[str, RESTART] = ""
    """State directory; where empty: HEATSOAK_STATE_DIR, $STATE_DIRECTORY, /var/lib/heatsoak for root, else the
    XDG state home."""


class WebSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Where metrics, page and health are served."""

    listen: Annotated[tuple[str, ...], Meta(min_length=1), RESTART] = (":9838",)
    """Addresses, as `:9838`, `9838`, `0.0.0.0:9838`, `[::]:9838` or `unix:/run/heatsoak.sock`."""
    config_file: Annotated[str, RESTART] = ""
    """Web configuration in the exporter-toolkit's YAML: TLS, client certificates, users."""
    max_connections: Annotated[int, Meta(ge=1, le=10000), RESTART] = 256
    """Connections held open at a time."""
    timeout_s: Annotated[Positive, RESTART] = 10.0
    """Seconds a client may take over one request or one answer."""


class NvmlSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Reading the cards."""

    enabled: Annotated[bool, RESTART] = True
    """Whether cards are read at all."""
    read_deadline_s: Annotated[Positive, RESTART] = 1.5
    """Seconds a driver call may take before the reader child is replaced."""
    init_deadline_s: Annotated[Positive, RESTART] = 60.0
    """Seconds the driver's initialisation may take."""
    off: Annotated[tuple[str, ...], RESTART] = ()
    """Keys of quantities that are not read (see docs/METRICS.md)."""
    library: Annotated[str, RESTART] = ""
    """Path of libnvidia-ml.so.1 where the loader does not find it."""


class HostSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Reading the host."""

    off: tuple[HostCollector, ...] = ()
    """Names of host collectors that do not run."""
    proc_root: Annotated[str, RESTART] = "/proc"
    """Where the host's /proc is mounted."""
    sys_root: Annotated[str, RESTART] = "/sys"
    """Where the host's /sys is mounted."""
    network_exclude: str = r"^(lo|veth.*|cali.*|cni.*|docker.*|br-.*|virbr.*|tunl.*|flannel.*|kube-.*)$"
    """Regular expression of network devices left out."""
    disk_exclude: str = r"^(loop|ram|zram|fd|sr|dm-)\d*|^[hsv]d[a-z]+\d+$|^nvme\d+n\d+p\d+$|^mmcblk\d+p\d+$"
    """Regular expression of block devices left out."""


class ProbeSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The calibrated probes."""

    enabled: bool = True
    """Whether probes run by themselves."""
    device: Literal["gpu", "cpu"] = "gpu"
    """`cpu` runs the scheduled probes on the CPU at a small shape; they never fall back to it unasked."""
    python: str = ""
    """Interpreter that has TensorFlow; the agent's own where empty."""
    python_path: tuple[str, ...] = ()
    """Directories with TensorFlow outside that interpreter, as `pip install --target` makes them."""
    interval_s: Annotated[float, Meta(ge=5)] = 3600.0
    """Seconds between two probes of a card."""
    jitter: Share = 0.1
    """Share of the interval by which each run is moved at random."""
    daily: bool = True
    """Whether the other data types and networks run once a day."""
    first_delay_s: NotNegative = 60.0
    """Seconds after the start before the first probe."""
    deadline_s: Positive = 180.0
    """Seconds after which a probe child is ended."""
    idle_s: NotNegative = 30.0
    """Seconds of utilisation 0 before a card counts as idle."""
    idle_memory_mib: NotNegative = 300.0
    """MiB of used memory above the card's idle level that still count as idle."""
    duty_budget: Share = 0.01
    """Largest share of a card's time that scheduled probes may take, over a day."""
    host_memory_mib: Annotated[float, Meta(ge=-1)] = -1.0
    """MiB of host memory that must be free, in the host and in the cgroup, before a probe child starts; -1 goes by
    what it runs: 3072 for the hourly pair, 7168 for the daily measurements, less on a CPU."""
    threads: Annotated[int, Meta(ge=1)] = 4
    """Most threads TensorFlow may use for one operation in the scheduled probes."""
    trust_pids: Annotated[Literal["auto", "yes", "no"], RESTART] = "auto"
    """Whether process ids are the host's; `auto` finds out."""


class PipelineSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The input pipeline probe."""

    data_dir: str = ""
    """Directory of JPEG files to decode; generated images in a temporary folder where empty."""


class AllocationSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Who holds which card; a card that is given away is not idle, even with nothing running on it."""

    pod_resources: Annotated[str, RESTART] = ""
    """The kubelet's pod-resources socket, as /var/lib/kubelet/pod-resources/kubelet.sock; not asked where empty. Needs
    the extra `kubernetes` and, for the socket, root."""
    slurm: Annotated[bool, RESTART] = False
    """Whether to look for the Slurm jobs of the processes on the cards, and in `jobs_dir`."""
    jobs_dir: Annotated[str, RESTART] = "/run/heatsoak-jobs"
    """Directory in which a Slurm prolog notes each job's cards (see deploy/slurm); not read where empty."""


class ThrottleSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Throttling, clocks and heat."""

    window_s: Annotated[float, Meta(ge=5, le=150)] = 30.0
    """Seconds over which throttling is judged."""
    share: Share = 0.1
    """Share of that time a non-benign reason must hold."""
    busy_ratio: Share = 0.2
    """Mean utilisation from which a card counts as busy: what an idle card does to its clocks is no fault."""
    low_clock_ratio: Share = 0.75
    """SM clock, as a share of the highest, below which a busy card's clock asks for an explanation."""
    stuck_clock_ratio: Share = 0.4
    """SM clock, as a share of the highest, below which a busy card is stuck rather than slowed."""
    stuck_s: Annotated[float, Meta(ge=30, le=300)] = 120.0
    """Seconds a busy card's clock must be that low."""
    resistance_rise: Positive = 0.2
    """Share by which a card's thermal resistance may rise above its own history."""


class MemorySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """ECC errors, row remapping and retired pages."""

    corrected_per_hour: Positive = 100.0
    """Corrected errors an hour below which a card is never an outlier."""
    corrected_times_peers: Positive = 10.0
    """Times the median of its peers from which a card's corrected error rate is an outlier."""
    retired_pages: Annotated[int, Meta(ge=1)] = 60
    """Retired pages from which a card should be replaced."""


class LinkSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """PCIe and NVLink."""

    window_s: Annotated[float, Meta(ge=25, le=300)] = 30.0
    """Seconds of load over which the PCIe link's width and generation are judged."""
    bit_error_rate: Positive = 1e-12
    """Bit errors a bit that a PCIe link may have; the standard's own limit up to generation 5."""
    nvlink_errors_per_hour: Positive = 10.0
    """NVLink replay, recovery and CRC errors an hour that are tolerated."""


class XidSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """XID errors."""

    hold_s: Annotated[float, Meta(gt=0, le=43200)] = 3600.0
    """Seconds after a serious XID during which the card counts as faulty."""
    mention_s: Annotated[float, Meta(gt=0, le=43200)] = 900.0
    """Seconds after any other XID during which it is mentioned."""
    off: tuple[int, ...] = ()
    """XID codes that are left out."""


class InputBoundSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Starving cards."""

    window_s: Annotated[float, Meta(ge=5, le=120)] = 30.0
    """Seconds over which utilisation and processes are judged."""
    duty: Share = 0.75
    """Mean utilisation below which a card with a process on it may be starving."""
    active: Share = 0.5
    """Share of the time in which the card must have worked at all: a process that loads or compiles starves nobody."""
    computing_cores: Positive = 0.8
    """Cores a process must use to count as computing on the CPU all the time."""
    used_up: Share = 0.85
    """Share of its cores from which a process, or the host, has used them up."""
    periods_throttled: Share = 0.25
    """Share of enforcement periods in which a CPU quota may run out."""
    waiting_for_disk: Share = 0.2
    """Share of the time in which tasks of a process's control group may wait for a disk."""


class DegradedSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Slow cards, judged by their probes (docs/verdicts-statistics.md says what the numbers buy)."""

    drop: Share = 0.038
    """Share by which one judged figure must lie below the card's own reference to count as slow."""
    drop_both: Share = 0.0355
    """Share by which the mean of a run's two judged figures must lie below their references to count as slow."""
    noise_times: NotNegative = 3.0
    """Robust standard deviations of the reference by which it must lie below at least; matters on noisy cards only."""
    confirm_runs: Annotated[int, Meta(ge=1)] = 3
    """Slow runs in a row that condemn a card; as many good ones clear it."""
    confirm_measurements: Annotated[int, Meta(ge=1)] = 5
    """Slow measurements in a row needed beside that; runs on suspicion are made twice."""
    doubts: Annotated[int, Meta(ge=1)] = 2
    """Rounds of runs on suspicion that may come to nothing in six hours before no more are made."""
    drift_slack: Share = 0.015
    """Share below the reference from which a small slowdown adds up."""
    drift_clip: Share = 0.015
    """Most that one run adds."""
    drift_limit: Share = 0.1
    """Sum from which the card counts as slow."""
    drift_spacing_s: NotNegative = 1800.0
    """Least seconds between two runs that add up."""
    reference_runs: Annotated[int, Meta(ge=3)] = 20
    """Clean runs that make a reference."""
    reference_span_h: NotNegative = 24.0
    """Hours those runs must span at least, so that a day's swing is in them."""
    reference_noise: Share = 0.02
    """Standard deviation, as a share, above which runs scatter too much to make a reference."""
    continuity: Share = 0.015
    """Share by which a reference after a change of driver or TensorFlow may differ from the one before."""
    witness_s: NotNegative = 7200.0
    """Seconds a verdict waits for another card of the node to be measured, to tell the card from the host."""
    peers_drop: Share = 0.05
    """Share below its peers from which a card is mentioned."""
    peers_sigma: Positive = 4.0
    """Robust standard deviations of good cards of its model by which it must lie below its peers to be condemned."""
    unknown_spread: Share = 0.05
    """Standard deviation assumed of good cards of a model whose spread is not known."""
    stale_h: Positive = 168.0
    """Hours after which the last judged probe says nothing about a card any more."""
    wrong_answer_hold_h: Positive = 168.0
    """Hours after its last wrong answer during which a card counts as faulty."""


class VerdictSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The rules that judge cards and node."""

    rules: dict[str, RuleMode] = field(default_factory=dict)
    """`off`, `shadow` (exported, not in the card's state) or `on` by rule name, where it differs from the default."""
    throttle: ThrottleSettings = field(default_factory=ThrottleSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    link: LinkSettings = field(default_factory=LinkSettings)
    xid: XidSettings = field(default_factory=XidSettings)
    input_bound: InputBoundSettings = field(default_factory=InputBoundSettings)
    degraded: DegradedSettings = field(default_factory=DegradedSettings)


class LogSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """The agent's log on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least level that is written."""
    format: Literal["auto", "json", "console"] = "auto"
    """`auto` writes JSON under systemd, in a pod and into a pipe, and plain text on a terminal."""


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """The whole configuration."""

    node: NodeSettings = field(default_factory=NodeSettings)
    agent: AgentSettings = field(default_factory=AgentSettings)
    web: WebSettings = field(default_factory=WebSettings)
    nvml: NvmlSettings = field(default_factory=NvmlSettings)
    host: HostSettings = field(default_factory=HostSettings)
    probe: ProbeSettings = field(default_factory=ProbeSettings)
    pipeline: PipelineSettings = field(default_factory=PipelineSettings)
    allocation: AllocationSettings = field(default_factory=AllocationSettings)
    verdicts: VerdictSettings = field(default_factory=VerdictSettings)
    log: LogSettings = field(default_factory=LogSettings)
