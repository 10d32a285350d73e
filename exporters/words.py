"""The closed vocabularies as people read them, and the tone in which the page says each."""

from collections.abc import Mapping
from typing import Final

from agent.model.vocabulary import NodeState

NOT_JUDGED: Final = "unjudged"
"""The state of a card before its first verdict."""
CARD_WORDS: Final[Mapping[str, str]] = {
    "maintenance": "In maintenance",
    "lost": "Lost",
    "faulty": "Faulty",
    "degraded": "Degraded",
    "throttled": "Throttled",
    "unknown": "Unknown",
    "ok": "OK",
    NOT_JUDGED: "Not judged yet",
}
"""The states of a card."""
TONES: Final[Mapping[str, str]] = {
    "maintenance": "paused",
    "lost": "bad",
    "faulty": "bad",
    "degraded": "bad",
    "throttled": "warn",
    "unknown": "quiet",
    "ok": "good",
    NOT_JUDGED: "quiet",
}
"""How serious each state of a card is, as a class of the style sheet."""
WORST_FIRST: Final = ("lost", "faulty", "degraded", "throttled", "unknown", NOT_JUDGED, "maintenance", "ok")
"""The states of a card in the order in which somebody should look."""
WORKLOAD_WORDS: Final[Mapping[str, str]] = {"input_bound": "Input-bound", "underused": "Underused"}
"""The states of a workload that are worth a word."""
NODE_WORDS: Final[Mapping[NodeState, str]] = {
    "probe_environment_broken": "Probe environment broken",
    "nvml_down": "NVIDIA driver down",
    "driver_hung": "NVIDIA driver hangs",
    "fabric_down": "NVLink fabric down",
    "gpu_missing": "Card missing",
    "host_slow": "Host slows its cards",
}
"""The states of a node that are worth a banner."""
REASON_WORDS: Final[Mapping[str, str]] = {
    "gpu_idle": "idle",
    "applications_clocks": "application clocks",
    "sw_power_cap": "power cap",
    "hw_slowdown": "hardware slowdown",
    "sync_boost": "sync boost",
    "sw_thermal": "heat (driver)",
    "hw_thermal": "heat (hardware)",
    "hw_power_brake": "power brake",
    "display_clocks": "display clocks",
}
"""What holds a card's clocks down."""
PROBE_WORDS: Final[Mapping[str, str]] = {
    "matmul": "Matrix product",
    "resnet50": "ResNet-50 step",
    "vgg16": "VGG16 step",
    "pipeline": "Input pipeline",
    "bandwidth": "Bandwidth",
    "fill": "Memory fill",
    "memory": "Training memory",
}
"""The probes."""
