"""What to do about each reason of a probe: one table for the doctor, the verdicts and the commands that probe."""

from types import MappingProxyType
from typing import Final

from agent.model.probe import ProbeRecord

_CUDA_WHEELS: Final = "`pip install 'tensorflow[and-cuda]'`"
_IN_USE: Final = "run it again when the card is idle; --force measures a card in use"
_WRONG: Final = "take the card out of service: it computes wrong"
_WRONG_CPU: Final = "trust no result of this machine: test its memory and its processor"
_REPEATED: Final = "read what it said; where that repeats, install TensorFlow anew"

ACTIONS: Final = MappingProxyType(
    {
        "foreign_process": _IN_USE,
        "memory_in_use": _IN_USE,
        "busy": _IN_USE,
        "compute_mode": "let further processes in: `nvidia-smi -i GPU -c DEFAULT`",
        "mig_mode": "end MIG mode where the whole card is to be measured: `nvidia-smi -i GPU -mig 0`",
        "allocated": "run it again when the scheduler has the card back",
        "no_host_pid": 'share the host\'s pid namespace (hostPID: true); where it is, set probe.trust_pids = "yes"',
        "no_telemetry": "see why the driver does not answer for this card: `nvidia-smi`, dmesg",
        "host_memory": "give the host or the container more memory, or lower probe.host_memory_mib",
        "host_busy": "run it again when every card of the node is idle",
        "duty_budget": "wait, or raise probe.duty_budget",
        "maintenance": "give the card back when the work on it is done: `heatsoak resume`",
        "environment_backoff": "cure what the last error of a probe names; it is tried again by itself",
        "unsupported": "choose another data type or network; this card or this TensorFlow has none such",
        "disabled": "set probe.enabled = true where probes are wanted",
        "tensorflow_missing": "install TensorFlow: `pip install 'heatsoak[gpu]'`; or name an interpreter that has it "
        "in probe.python",
        "not_a_gpu_build": f"install a TensorFlow with CUDA: {_CUDA_WHEELS}",
        "missing_library": f"add its folder to LD_LIBRARY_PATH, or install it: {_CUDA_WHEELS}",
        "driver_too_old": "upgrade the driver, or install a TensorFlow built with an older CUDA",
        "compute_capability": "install a TensorFlow whose build knows this card",
        "no_gpu": "see CUDA_VISIBLE_DEVICES, and which cards the container was given",
        "cuda_init_failed": "reload the driver's modules, or reboot where it was just upgraded; then look at dmesg",
        "ran_on_cpu": f"install a TensorFlow whose CUDA fits the driver: {_CUDA_WHEELS}",
        "wrong_device": "see CUDA_DEVICE_ORDER, and what remaps cards in this container",
        "oom": "end what holds the card's memory, and run it again",
        "oom_killed": "give the host or the container more memory",
        "crashed": f"{_REPEATED}; dmesg tells of the driver's own errors",
        "exit_code": _REPEATED,
        "bad_result": "see what prints or redirects in the interpreter of probe.python (sitecustomize, wrappers)",
        "interpreter_missing": "correct probe.python (HEATSOAK_PROBE_PYTHON)",
        "failed": _REPEATED,
        "deadline": "see what slows the host; where it is only slow, raise probe.deadline_s",
        "tenant_arrived": _IN_USE,
        "gpu_lost": "take the node out of service; reset the card, or reboot",
        "reader_down": "see why the driver stopped to answer: `nvidia-smi`, dmesg",
        "shutting_down": "run it again",
        "exact_mismatch": _WRONG,
        "bound_exceeded": _WRONG,
        "not_finite": _WRONG,
        "memory_mismatch": _WRONG,
    }
)
"""By the reason, without the value after its colon: a clause that begins small and ends without a stop."""
ON_CPU: Final = MappingProxyType(
    {
        "tensorflow_missing": "install TensorFlow: `pip install 'heatsoak[cpu]'`; or name an interpreter that has it "
        "in probe.python",
        "missing_library": "add its folder to LD_LIBRARY_PATH, or install TensorFlow anew: "
        "`pip install 'heatsoak[cpu]'`",
        "exact_mismatch": _WRONG_CPU,
        "bound_exceeded": _WRONG_CPU,
        "not_finite": _WRONG_CPU,
        "memory_mismatch": _WRONG_CPU,
    }
)
"""What to do otherwise where the probe ran on the CPU."""
UNKNOWN: Final = "run `heatsoak doctor`"
"""For a reason of another version, as an old state file may hold it."""


def next_action(record: ProbeRecord) -> str:
    """Return what to do about a record without a good value; empty for one that has it."""
    word = record.result.reason.partition(":")[0]
    if record.result.status == "ok":
        return ""
    if record.uuid == "cpu" and word in ON_CPU:
        return ON_CPU[word]
    return ACTIONS.get(word, UNKNOWN)


def sentence(action: str) -> str:
    """Return an action as a sentence of its own."""
    return f"{action[:1].upper()}{action[1:]}."
