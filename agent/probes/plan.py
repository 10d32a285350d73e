"""What is measured when: the judged pair each hour, the rest once a day, the pipeline on an idle node."""

from typing import Final, Literal

import msgspec

from agent.model.probe import DeviceKind, ProbeRequest

DAY_S: Final = 86400.0
SUSPICION_DELAYS_S: Final = (300.0, 900.0)
"""When a card under suspicion is measured again, in seconds after it arose."""
SUSPICION_RUNS: Final = 2
"""How often it is measured then, one fresh child after the other."""


class Plan(msgspec.Struct, frozen=True):
    """A set of measurements made in one child."""

    name: Literal["hourly", "daily", "pipeline"]
    requests: tuple[ProbeRequest, ...]
    whole_node: bool = False
    """Needs every card of the node at rest, and all of its CPUs."""


JUDGED: Final = Plan(
    "hourly",
    (
        ProbeRequest(probe="matmul", dtype="bf16"),
        ProbeRequest(probe="resnet50", dtype="bf16"),
    ),
)
DAILY: Final = Plan(
    "daily",
    (
        ProbeRequest(probe="matmul", dtype="fp16", seconds=1.0),
        ProbeRequest(probe="matmul", dtype="tf32", seconds=1.0),
        ProbeRequest(probe="matmul", dtype="fp32", seconds=1.0),
        ProbeRequest(probe="matmul", dtype="fp64", seconds=1.0),
        ProbeRequest(probe="resnet50", dtype="tf32", size=224, batch=32, seconds=1.0),
        ProbeRequest(probe="resnet50", dtype="bf16", size=32, batch=64, seconds=1.0),
        ProbeRequest(probe="vgg16", dtype="bf16", seconds=1.0),
        ProbeRequest(probe="bandwidth"),
    ),
)
_ON_CPU: Final = Plan(
    "hourly",
    (
        ProbeRequest(probe="matmul", dtype="fp32", size=1024, seconds=1.0),
        ProbeRequest(probe="resnet50", dtype="fp32", size=64, batch=2, seconds=1.0),
    ),
)


def plans(device: DeviceKind, *, daily: bool, data_dir: str) -> tuple[Plan, ...]:
    """Return what is measured on each device of a kind, the hourly plan first.

    The pipeline decodes the JPEG files below ``data_dir``, images of its own where that is empty.
    """
    if device == "cpu":
        return (_ON_CPU,)
    if not daily:
        return (JUDGED,)
    options = {"data_dir": data_dir} if data_dir else {}
    pipeline = Plan("pipeline", (ProbeRequest(probe="pipeline", dtype="bf16", options=options),), whole_node=True)
    return (JUDGED, DAILY, pipeline)


def next_due_s(due_s: float, now_s: float, interval_s: float, jitter: float, draw: float) -> float:
    """Return when a run due at ``due_s`` is due again: an interval later, moved by up to ``jitter`` of it.

    ``draw`` is a random number from 0 to 1. Runs that were missed, as in a suspended machine, are not made
    up for: the rhythm starts anew from ``now_s``.
    """
    step_s = interval_s * (1.0 + jitter * (2.0 * draw - 1.0))
    return due_s + step_s if due_s + step_s > now_s else now_s + step_s
