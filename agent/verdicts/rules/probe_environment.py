"""The probe environment is broken: TensorFlow cannot use any card here. No card is to blame."""

from typing import Final

from agent.config.settings import VerdictSettings
from agent.model.next_action import next_action, sentence
from agent.verdicts.rules.probe_failing import failing, reason_of
from agent.verdicts.view import Conclusion, NodeRule, NodeView

NAME = "probe_environment"
REASONS: Final = frozenset(
    {
        "tensorflow_missing",
        "not_a_gpu_build",
        "missing_library",
        "driver_too_old",
        "compute_capability",
        "no_gpu",
        "cuda_init_failed",
        "ran_on_cpu",
        "wrong_device",
        "interpreter_missing",
        "crashed",
        "exit_code",
        "bad_result",
        "oom_killed",
    }
)
"""Reasons that speak of the software and not of one card's work."""


def judge(view: NodeView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``probe_environment_broken`` where the probes of every device that was probed keep failing.

    Where probes run on the CPU, that is the one device.
    """
    devices = [card.probes for card in view.cards]
    devices.append(tuple(record for record in view.probes if record.uuid == "cpu"))
    probed = [probes for probes in devices if any(r.result.status not in ("skipped", "aborted") for r in probes)]
    newest = [failing(probes) for probes in probed]
    broken = [record for record in newest if record is not None and reason_of(record) in REASONS]
    if not broken or len(broken) < len(probed):
        return None
    latest = max(broken, key=lambda record: record.wall_s)
    return Conclusion(
        state="probe_environment_broken",
        cause=reason_of(latest),
        summary=f"Probes cannot run on this node: {latest.result.detail or latest.result.reason}.",
        next_action=f"{sentence(next_action(latest))} `heatsoak doctor` looks further.",
        evidence={"devices_failing": float(len(broken)), "devices_probed": float(len(probed))},
    )


RULE = NodeRule(NAME, judge, covers=("probe_failing",))
