"""Closed vocabularies: the same words in metrics, JSON, exit codes, reports and rules."""

from typing import Final, Literal

ProbeStatus = Literal["ok", "skipped", "error", "timeout", "aborted", "wrong_answer"]
CardState = Literal["maintenance", "lost", "faulty", "degraded", "throttled", "unknown", "ok"]
WorkloadState = Literal["ok", "input_bound", "underused", "none"]
NodeState = Literal[
    "ok", "probe_environment_broken", "nvml_down", "driver_hung", "fabric_down", "gpu_missing", "host_slow"
]
Tier = Literal["fast", "samples", "slow", "static"]
MetricKind = Literal["gauge", "counter"]
HostCollector = Literal[
    "cpu", "load", "memory", "swap", "pressure", "disk", "network", "cgroup", "shm", "hypervisor", "system"
]

PROBE_STATUSES: Final[tuple[ProbeStatus, ...]] = ("ok", "skipped", "error", "timeout", "aborted", "wrong_answer")
CARD_STATES: Final[tuple[CardState, ...]] = (
    "maintenance",
    "lost",
    "faulty",
    "degraded",
    "throttled",
    "unknown",
    "ok",
)
"""In order of precedence: the first that applies is the card's state."""
WORKLOAD_STATES: Final[tuple[WorkloadState, ...]] = ("ok", "input_bound", "underused", "none")
NODE_STATES: Final[tuple[NodeState, ...]] = (
    "ok",
    "probe_environment_broken",
    "nvml_down",
    "driver_hung",
    "fabric_down",
    "gpu_missing",
    "host_slow",
)
RULE_NAMES: Final[tuple[str, ...]] = (
    "maintenance",
    "card_lost",
    "ecc_uncorrected",
    "row_remap",
    "retired_pages",
    "recovery_action",
    "xid",
    "wrong_answer",
    "degraded",
    "slow_drift",
    "below_peers",
    "below_floor",
    "fell_together",
    "pcie_link",
    "pcie_replay",
    "nvlink",
    "low_clocks",
    "thermal_throttling",
    "power_brake",
    "hw_slowdown",
    "no_telemetry",
    "probe_failing",
    "unjudged",
    "thermal_resistance",
    "ecc_corrected",
    "power_cap",
    "input_bound",
    "driver_hung",
    "nvml_down",
    "fabric_down",
    "gpu_missing",
    "probe_environment",
    "host_slow",
)
"""Every rule that judges cards, then every rule that judges the node, as configuration and metrics name them."""

TIER_PERIOD_S: Final[dict[Tier, float]] = {"fast": 1.0, "samples": 2.0, "slow": 10.0, "static": 600.0}
"""How often each tier is read, in seconds; nothing older than three periods is served."""

PROBE_REASONS: Final[dict[ProbeStatus, dict[str, str]]] = {
    "ok": {},
    "skipped": {
        "foreign_process": "a process that is not ours uses the card",
        "memory_in_use": "used memory is more than 300 MiB above the card's idle level",
        "busy": "the card's utilisation was not 0 throughout the last 30 s",
        "compute_mode": "the card's compute mode forbids another process",
        "mig_mode": "the card is split by MIG: a probe would see a slice of it",
        "allocated": "a scheduler has given the card away",
        "no_host_pid": "process ids cannot be trusted here, so idle cannot be known",
        "no_telemetry": "the card's readings, or its scheduler's word, are missing or stale: idle cannot be known",
        "host_memory": "host or cgroup memory would not hold the probe",
        "host_busy": "the pipeline probe runs on a wholly idle node only",
        "duty_budget": "the probe's share of the card's time is used up",
        "maintenance": "the card is paused by an operator",
        "environment_backoff": "the probe environment was broken a moment ago; tried again later",
        "unsupported": "the card or the TensorFlow build has no such data type or network",
        "disabled": "probes are switched off in the configuration",
    },
    "error": {
        "tensorflow_missing": "the probe's interpreter has no TensorFlow",
        "not_a_gpu_build": "TensorFlow was built without CUDA",
        "missing_library": "a library TensorFlow needs fails to load; its name follows a colon",
        "driver_too_old": "the driver does not serve the CUDA version TensorFlow was built with",
        "compute_capability": "the TensorFlow build has no code for this card",
        "no_gpu": "TensorFlow lists no GPU though one was made visible",
        "cuda_init_failed": "CUDA fails to initialise; its error follows a colon",
        "ran_on_cpu": "the work did not run on the card",
        "wrong_device": "CUDA opened another card than the one asked for",
        "oom": "the card's memory did not hold the work; the size follows a colon",
        "oom_killed": "the kernel killed the child for lack of host memory",
        "crashed": "the child died of a signal; its name follows a colon",
        "exit_code": "the child ended without a result; its exit code follows a colon",
        "bad_result": "the child's answer breaks the documented form",
        "interpreter_missing": "the interpreter of probe.python cannot be started",
        "failed": "an operation raised an error; its class follows a colon",
    },
    "timeout": {"deadline": "the child outran its deadline and was ended"},
    "aborted": {
        "tenant_arrived": "another process came to the card",
        "gpu_lost": "the card fell off the bus",
        "reader_down": "the card's readings stopped, so being a good guest could not be assured",
        "maintenance": "an operator paused the card",
        "shutting_down": "the agent is stopping",
    },
    "wrong_answer": {
        "exact_mismatch": "a product of exact integers differs from the right digest",
        "bound_exceeded": "a product of random numbers lies beyond its derived error bound",
        "not_finite": "a result holds NaN or infinity",
        "memory_mismatch": "memory read back differs from what was written",
    },
}
"""Every reason a probe result may carry, by status, with its meaning.

A reason may carry a value after a colon, as in ``missing_library:libcusolver.so.11``.
"""


def reason_is_known(status: ProbeStatus, reason: str) -> bool:
    """Return whether ``reason``, its value after a colon left out, is documented for ``status``."""
    if status == "ok":
        return reason == ""
    return reason.partition(":")[0] in PROBE_REASONS[status]
