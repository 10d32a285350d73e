"""``heatsoak bench --smoke``: does TensorFlow really use this card? The answer in a minute, with the cause if not."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Final

import msgspec

from agent.errors import EXIT_BAD_CARD, EXIT_OK, EXIT_UNKNOWN_CARD
from agent.model.next_action import next_action
from agent.model.probe import DeviceKind, ProbeRecord, ProbeRequest
from agent.model.snapshot import Card
from agent.probes.job import Setup
from agent.probes.session import ProbeSession
from agent.probes.show import cause_text, value_text

WITHIN_S: Final = 45.0
STEPS: Final = 20
_REQUESTS: Final[MappingProxyType[DeviceKind, tuple[ProbeRequest, ...]]] = MappingProxyType(
    {
        "gpu": (
            ProbeRequest("matmul", "fp32", 2048, seconds=0.5),
            ProbeRequest("resnet50", "fp32", 64, 16, seconds=0.5, options={"steps": STEPS}),
        ),
        "cpu": (
            ProbeRequest("matmul", "fp32", 512, seconds=0.2),
            ProbeRequest("resnet50", "fp32", 32, 2, seconds=0.2, options={"steps": STEPS}),
        ),
    }
)


class Answer(msgspec.Struct, frozen=True):
    """What is known of one device after its child."""

    device: str
    uses: bool
    wrong: bool
    """Whether the card computed wrong or was lost."""
    found: str
    next_action: str = ""


def ask(
    session: ProbeSession,
    cards: Sequence[Card],
    at_once: int,
    *,
    force: bool,
    setup: Setup,
) -> tuple[tuple[ProbeRecord, ...], ...]:
    """Return the records of a short child on each card, ``at_once`` side by side; on the CPU where there are none."""
    uuids: list[str | None] = [card.identity.uuid for card in cards] or [None]
    requests = _REQUESTS["gpu" if cards else "cpu"]

    def measure(uuid: str | None) -> tuple[ProbeRecord, ...]:
        return session.run(requests, uuid, force=force, deadline_s=WITHIN_S, setup=setup, trigger="bench")

    with ThreadPoolExecutor(max_workers=max(1, at_once)) as pool:
        return tuple(pool.map(measure, uuids))


def answer_of(records: Sequence[ProbeRecord], name: str = "") -> Answer:
    """Return what the records of one device say; ``name`` is the card's."""
    first = records[0]
    device = f"gpu {first.gpu} {name}".rstrip() if first.gpu is not None else "cpu"
    bad = next((record for record in records if record.result.status != "ok"), None)
    if bad is None:
        values = "; ".join(f"{record.result.probe} {value_text(record.result)}" for record in records)
        where = "on the card" if first.gpu is not None else "on the CPU"
        found = f"TensorFlow {first.environment.tensorflow} computed {where}, and right: {values}"
        return Answer(device, uses=True, wrong=False, found=found)
    reason = bad.result.reason.partition(":")[0]
    found = cause_text(bad.result)
    wrong = bad.result.status == "wrong_answer" or reason == "gpu_lost"
    return Answer(device, uses=False, wrong=wrong, found=found, next_action=next_action(bad))


def exit_code(answers: Sequence[Answer]) -> int:
    """Return 0 where every device is used, 10 where one computed wrong or was lost, else 11."""
    if any(answer.wrong for answer in answers):
        return EXIT_BAD_CARD
    return EXIT_OK if answers and all(answer.uses for answer in answers) else EXIT_UNKNOWN_CARD


def text(answers: Sequence[Answer]) -> str:
    """Return the answers for people, two lines each at most."""
    lines = []
    for answer in answers:
        lines.append(f"{answer.device}: {'yes' if answer.uses else 'no'}: {answer.found}")
        if answer.next_action:
            lines.append(f"  -> {answer.next_action}")
    return "\n".join(lines)
