"""Probes that end without a measurement: the card is neither proven healthy nor blamed."""

from collections.abc import Iterable
from typing import Final

from agent.config.settings import VerdictSettings
from agent.model.next_action import next_action, sentence
from agent.model.probe import ProbeRecord
from agent.verdicts.view import CardRule, CardView, Conclusion

NAME = "probe_failing"
APART_S: Final = 60.0
"""Failures this far apart come from different runs: one failed run is no verdict."""
CERTAIN: Final = frozenset({"tensorflow_missing", "not_a_gpu_build", "missing_library", "interpreter_missing"})
"""Reasons that another run would only repeat."""


def failures(records: Iterable[ProbeRecord]) -> list[ProbeRecord]:
    """Return the errors and timeouts since the last probe that said something, oldest first.

    Skipped and aborted probes say nothing; a wrong answer says something about the card.
    """
    found: list[ProbeRecord] = []
    for record in sorted(records, key=lambda record: record.wall_s):
        if record.result.status in ("error", "timeout"):
            found.append(record)
        elif record.result.status in ("ok", "wrong_answer"):
            found.clear()
    return found


def reason_of(record: ProbeRecord) -> str:
    """Return the reason's word without the value after its colon."""
    return record.result.reason.partition(":")[0]


def failing(records: Iterable[ProbeRecord]) -> ProbeRecord | None:
    """Return the newest failure where probes keep failing, else None."""
    failed = failures(records)
    if not failed:
        return None
    newest = failed[-1]
    if reason_of(newest) not in CERTAIN and newest.wall_s - failed[0].wall_s < APART_S:
        return None
    return newest


def judge(view: CardView, _thresholds: VerdictSettings) -> Conclusion | None:
    """Return ``unknown`` with the probe's reason as cause while the card's probes keep failing."""
    newest = failing(view.probes)
    if newest is None:
        return None
    return Conclusion(
        state="unknown",
        cause=reason_of(newest),
        summary=f"Probes of this card fail: {newest.result.detail or newest.result.reason}.",
        next_action=f"{sentence(next_action(newest))} `heatsoak probe matmul` tries it again.",
        evidence={"failures": float(len(failures(view.probes)))},
    )


RULE = CardRule(NAME, judge, inputs="probes")
