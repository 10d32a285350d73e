"""Carries a plan out, step by step: a child for each group of requests, a fresh one after each failure."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from agent.bench.environment import default_label, differences, masked, with_software
from agent.bench.model import BenchResult, Step
from agent.bench.plan import PlannedStep
from agent.bench.points import point_of
from agent.bench.search import Outcome, find_largest
from agent.bench.store import save
from agent.clock import Clock
from agent.errors import EXIT_USAGE, HeatsoakError
from agent.model.probe import ChildEvent, Hello, ProbeRecord, ProbeRequest
from agent.model.snapshot import Card
from agent.probes.job import Setup
from agent.probes.outcome import ENVIRONMENT_REASONS
from agent.probes.session import ProbeSession
from agent.probes.show import cause_text

REST_S: Final = 30.0
"""How long to wait for cards to come to rest, which the last child kept busy."""
_PASSING: Final = frozenset({"busy", "memory_in_use", "no_telemetry"})
"""Reasons against a measurement that pass when the last child has left the card."""
LOOK_S: Final = 0.2
OUTSIDE_BYTES: Final = 1.5e9
"""About what a process takes of a card beside TensorFlow's allocator: context, kernels, handles of libraries."""
TRIGGER: Final = "bench"


class StoppedError(HeatsoakError):
    """Nothing further can be measured here now: a card is in use, the software does not work, or it was told to end."""

    def __init__(self, step: str, record: ProbeRecord) -> None:
        """Take the step that could not be made and the record that says why."""
        super().__init__(f"{step} could not be measured: {cause_text(record.result)}")
        self.step = step
        self.record = record


class OtherMachineError(HeatsoakError):
    """A result cannot be gone on with here, since its measurements would not belong together."""

    exit_code = EXIT_USAGE


class Lab:
    """Measures one step at a time on the cards that were chosen, or on the CPU where there are none."""

    def __init__(
        self, session: ProbeSession, cards: Sequence[Card], clock: Clock, *, force: bool, memory_limit_bytes: int = 0
    ) -> None:
        """Take the session; ``force`` measures on cards in use too, the limit is for all steps without their own."""
        self._session = session
        self._cards = tuple(cards)
        self._clock = clock
        self._force = force
        self._memory_limit_bytes = memory_limit_bytes
        self._stopping = threading.Event()

    def stop(self) -> None:
        """End the running child and start no further one; the step at hand is then stopped."""
        self._stopping.set()
        self._session.interrupt()

    def limit_of(self, step: PlannedStep) -> int:
        """Return the memory limit in bytes that a step runs under, 0 for none."""
        return step.memory_limit_bytes or self._memory_limit_bytes

    def measure(self, step: PlannedStep, on_event: Callable[[ChildEvent], None]) -> tuple[ProbeRecord, ...]:
        """Return the records of a step, those of failures among them.

        Raises:
            StoppedError: The step could not be made here and now.
        """
        if step.search_to:
            return self._search(step, on_event)
        left, records = step.requests, list[ProbeRecord]()
        while left:
            answers = self._child(step, left, on_event)
            sound = answers if len(left) == 1 else answers[: good_start(answers)]
            records += sound
            left = left[len(sound) :] if len(left) > 1 else ()
        return tuple(records)

    def _search(self, step: PlannedStep, on_event: Callable[[ChildEvent], None]) -> tuple[ProbeRecord, ...]:
        template, records = step.requests[0], list[ProbeRecord]()

        def attempt(batches: tuple[int, ...]) -> list[Outcome]:
            requests = tuple(msgspec.structs.replace(template, batch=batch) for batch in batches)
            answers = self._child(step, requests, on_event)
            records.extend(answers[: good_start(answers)])
            outcomes = [outcome_of(record) for record in answers]
            return outcomes[: next((at + 1 for at, one in enumerate(outcomes) if one != "fits"), len(outcomes))]

        find_largest(attempt, template.batch, step.search_to, lambda: expected_batch(records, self.limit_of(step)))
        return tuple(records)

    def _child(
        self, step: PlannedStep, requests: tuple[ProbeRequest, ...], on_event: Callable[[ChildEvent], None]
    ) -> tuple[ProbeRecord, ...]:
        """Run one child and return its records, at least one for each request."""
        cards = self._cards[: step.cards]
        uuid = cards[0].identity.uuid if cards else None
        setup = Setup(
            companions=cards[1:], memory_limit_bytes=self.limit_of(step), reserve_all=step.reserve_all
        )  # fmt: skip
        self._await_rest(cards)
        records = self._session.run(
            requests, uuid, on_event=on_event, force=self._force, deadline_s=step.deadline_s, setup=setup,
            trigger=TRIGGER,
        )  # fmt: skip
        blocked = next(filter(is_blocked, records), None)
        if blocked is not None:
            raise StoppedError(step.name, blocked)
        return tuple(masked(record) for record in records)

    def _await_rest(self, cards: Sequence[Card]) -> None:
        until_s = self._clock.monotonic_s() + REST_S
        while not self._force and self._clock.monotonic_s() < until_s:
            reasons = {self._session.why_not(card.identity.uuid) for card in cards}
            if not reasons & _PASSING or self._clock.wait(self._stopping, LOOK_S):
                return


def run_plan(
    result: BenchResult,
    steps: Sequence[PlannedStep],
    lab: Lab,
    path: Path,
    on_step: Callable[[PlannedStep], None],
    on_event: Callable[[ChildEvent], None],
) -> BenchResult:
    """Carry out the steps that ``result`` does not hold yet, saving it after each; return it complete.

    ``on_step`` is told of each step before it begins.

    Raises:
        StoppedError: A step could not be made; the file holds all that was done.
        OtherMachineError: The TensorFlow here is not the one that the result was begun with.
        OSError: The result cannot be written.
    """
    for step in pending(result, steps):
        on_step(step)
        guard = _Guard(result, lab, on_event)
        try:
            records = lab.measure(step, guard.take)
        finally:
            guard.check()
        done = Step(name=step.name, records=records, memory_limit_bytes=lab.limit_of(step))
        machine = with_software(result.machine, records[0].environment)
        label = result.label or default_label(machine)
        result = msgspec.structs.replace(result, machine=machine, label=label, steps=(*result.steps, done))
        save(result, path)
    result = msgspec.structs.replace(result, complete=True)
    save(result, path)
    return result


class _Guard:
    """Passes events on, and stops the lab as soon as a child runs another TensorFlow than the result's."""

    def __init__(self, result: BenchResult, lab: Lab, on_event: Callable[[ChildEvent], None]) -> None:
        self._result = result
        self._lab = lab
        self._on_event = on_event
        self._faults: list[str] = []

    def check(self) -> None:
        """Refuse what was measured, and the reason why it ended, where it was with another TensorFlow.

        Raises:
            OtherMachineError: It was.
        """
        if self._faults:
            raise OtherMachineError("; ".join(self._faults))

    def take(self, event: ChildEvent) -> None:
        if isinstance(event, Hello) and event.environment.tensorflow:
            now = msgspec.structs.replace(self._result.machine, tensorflow=event.environment.tensorflow)
            self._faults = differences(self._result, now)
            if self._faults:
                self._lab.stop()
        self._on_event(event)


def pending(result: BenchResult, steps: Sequence[PlannedStep]) -> tuple[PlannedStep, ...]:
    """Return the steps that a result does not hold yet."""
    done = {step.name for step in result.steps}
    return tuple(step for step in steps if step.name not in done)


def expected_batch(records: Sequence[ProbeRecord], limit_bytes: int) -> float:
    """Return the batch whose peak should just fit into the card's memory, or the limit; 0 where that is not known.

    The line through the peaks of the two largest batches measured is followed.
    """
    peaks = sorted(
        (point.batch, point.peak_bytes, point.record.device.memory_bytes)
        for point in map(point_of, records)
        if point is not None and point.peak_bytes and point.record.device is not None
    )
    if len(peaks) < 2:
        return 0.0
    (smaller, low_bytes, _), (larger, high_bytes, memory_bytes) = peaks[-2:]
    available_bytes = limit_bytes or memory_bytes - OUTSIDE_BYTES
    if high_bytes <= low_bytes or available_bytes <= 0:
        return 0.0
    return larger + (available_bytes - high_bytes) * (larger - smaller) / (high_bytes - low_bytes)


def good_start(records: Sequence[ProbeRecord]) -> int:
    """Return how many records from the first on can be believed of one child.

    What comes after a failure is left to a fresh child, and so is a lack of memory in a used one.
    """
    for at, record in enumerate(records):
        if outcome_of(record) != "fits" and record.result.reason != "unsupported":
            return at if at and outcome_of(record) == "oom" else at + 1
    return len(records)


def outcome_of(record: ProbeRecord) -> Outcome:
    """Return whether the work fitted into memory, did not, or failed otherwise."""
    if record.result.status == "ok":
        return "fits"
    return "oom" if record.result.reason.partition(":")[0] == "oom" else "failed"


def is_blocked(record: ProbeRecord) -> bool:
    """Return whether a record says nothing of what was to be measured, only that it could not be now or here."""
    answer = record.result
    if answer.status == "skipped":
        return answer.reason != "unsupported"
    return answer.status == "aborted" or answer.reason.partition(":")[0] in ENVIRONMENT_REASONS
