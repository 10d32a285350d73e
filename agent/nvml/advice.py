"""The likely cause of a driver that does not answer, in one line."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

NO_GPU: Final = "NO_GPU"
HUNG: Final = "HUNG"
CRASHED: Final = "CRASHED"
BAD_ANSWER: Final = "BAD_ANSWER"
CANNOT_START: Final = "CANNOT_START"
STARTING: Final = "STARTING"
PAUSED: Final = "PAUSED"
DISABLED: Final = "DISABLED"
MISMATCH: Final = "LIB_RM_VERSION_MISMATCH"
ONE_CARDS: Final = (
    "GPU_IS_LOST", "RESET_REQUIRED", "IRQ_ISSUE", "INSUFFICIENT_POWER", "CORRUPTED_INFOROM", "GPU_NOT_FOUND",
)  # fmt: skip
"""Error names that speak of one card; any other, said of every card, is the driver refusing."""

_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "LIBRARY_NOT_FOUND": "libnvidia-ml.so.1 is not found: no NVIDIA driver is installed here, or the container "
        "was started without it (nvml.library names another place)",
        "DRIVER_NOT_LOADED": "the nvidia kernel module is not loaded: modprobe nvidia, or look for its error in dmesg",
        MISMATCH: "the driver's library and its kernel module differ in version: reload the nvidia modules or reboot "
        "to finish the driver upgrade",
        "NO_PERMISSION": "this user may not read the device files: look at /dev/nvidia* and at the device cgroup",
        "UNKNOWN": "access to the device files was lost or the driver is in trouble: look at dmesg; in a container, "
        "restart it after systemctl daemon-reload took its devices away",
        "GPU_IS_LOST": "the card fell off the bus: look for XID 79 in dmesg, then reset or power-cycle it",
        "RESET_REQUIRED": "the card needs a reset: nvidia-smi --gpu-reset, or a reboot",
        "IRQ_ISSUE": "the card's interrupts do not arrive: look at dmesg and the firmware's settings",
        "MEMORY": "the machine is out of memory",
        "INSUFFICIENT_POWER": "an external power cable of a card is not connected",
        NO_GPU: "the driver is loaded and lists no card: look at lspci -d 10de: and dmesg",
        HUNG: "a driver call does not return: look for the driver's errors in dmesg; a reboot may be needed",
        CRASHED: "the driver's library crashes: reinstall the driver that matches its kernel module",
        BAD_ANSWER: "the reader child's answers are not readable: are two versions of the agent installed?",
        CANNOT_START: "no process can be started: look at memory and process limits",
        STARTING: "the driver is being initialised",
        PAUSED: "all cards are paused by an operator: `heatsoak resume` takes them up again",
        DISABLED: "nvml.enabled is false in the configuration",
    }
)


def advice(error: str) -> str:
    """Return the likely cause of ``error`` and what to do; empty for no error."""
    if not error:
        return ""
    return _ADVICE.get(error, f"the driver answers {error}: look at dmesg")
