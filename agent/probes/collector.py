"""A child's events, in their order, made into records."""

from collections.abc import Callable, Sequence

import msgspec

from agent.clock import Clock
from agent.model.probe import ChildEvent, Done, Environment, Hello, Phase, ProbeRecord, ProbeResult
from agent.probes.attribution import CardSample, attribute, efficiency, may_judge
from agent.probes.child import ChildExit
from agent.probes.decode import BadResultError
from agent.probes.job import Job, Setup
from agent.probes.outcome import Failure, device_fault, failed_result, without_value


class _Answer(msgspec.Struct, frozen=True):
    """A result, the request it answers, and when it came."""

    request: int
    result: ProbeResult
    wall_s: float
    elapsed_s: float


class Collector:
    """Takes a child's events in their order and turns them into records at the end."""

    def __init__(self, job: Job, clock: Clock, on_event: Callable[[ChildEvent], None]) -> None:
        """Pass each event on to ``on_event``."""
        self._job = job
        self._requests = job.requests
        self._clock = clock
        self._on_event = on_event
        self._start_s = clock.monotonic_s()
        self._current: int | None = None
        self._hello: Hello | None = None
        self._done: Done | None = None
        self._answers: list[_Answer] = []

    def take(self, event: ChildEvent) -> None:
        """Note one event and pass it on.

        Raises:
            BadResultError: A phase or a result belongs to no request.
        """
        match event:
            case Hello():
                self._hello = event
            case Done():
                self._done = event
            case Phase():
                if event.request >= len(self._requests):
                    raise BadResultError(f"phase of request {event.request}; there are {len(self._requests)}")
                self._current = event.request
            case ProbeResult():
                elapsed_s = self._clock.monotonic_s() - self._start_s
                self._answers.append(_Answer(self._request_of(event), event, self._clock.wall_s(), elapsed_s))
        self._on_event(event)

    def _request_of(self, result: ProbeResult) -> int:
        """Return which request a result answers.

        A request may have several good results, and fail before its first phase: so a failure that follows
        an answer of the current request is taken as the next one's.
        """
        fitting = [
            index
            for index, request in enumerate(self._requests)
            if request.probe == result.probe and ("" in (request.dtype, result.dtype) or request.dtype == result.dtype)
        ]
        waiting = [index for index in self.unanswered() if index in fitting]
        if self._current in fitting and (self._current in waiting or result.status == "ok" or not waiting):
            return self._current
        if waiting:
            return waiting[0]
        raise BadResultError(f"a result of {result.probe!r} in {result.dtype!r}, which was not asked for")

    def unanswered(self) -> list[int]:
        """Return the indices of requests without a result."""
        answered = {answer.request for answer in self._answers}
        return [index for index in range(len(self._requests)) if index not in answered]

    def records(
        self, failure: Failure, samples: Sequence[CardSample], ended: ChildExit | None
    ) -> tuple[ProbeRecord, ...]:
        """Return the records of all results, and of ``failure`` for each request without one."""
        elapsed_s = self._clock.monotonic_s() - self._start_s
        missing = [
            _Answer(index, failed_result(self._requests[index], failure), self._clock.wall_s(), elapsed_s)
            for index in self.unanswered()
        ]
        cpu_s = ended.cpu_s if ended else None
        if self._done and self._done.cpu_s:
            cpu_s = self._done.cpu_s
        return tuple(self._record(answer, samples, cpu_s) for answer in [*self._answers, *missing])

    def _record(self, answer: _Answer, samples: Sequence[CardSample], cpu_s: float | None) -> ProbeRecord:
        card = self._job.card.identity if self._job.card else None
        device = self._hello.device if self._hello else None
        environment = self._hello.environment if self._hello else Environment()
        if card and not environment.driver:
            environment = msgspec.structs.replace(environment, driver=card.driver)
        result = answer.result
        fault = device_fault(device, card) if result.status == "ok" else None
        if fault:
            result = without_value(result, fault)
        attribution = attribute(samples, result.window_start_monotonic_s, result.window_end_monotonic_s)
        figures = {**result.figures, **efficiency(result, attribution, self._job.setup.devices)}
        return ProbeRecord(
            wall_s=answer.wall_s,
            gpu=card.index if card else None,
            uuid=card.uuid if card else "cpu",
            result=msgspec.structs.replace(result, figures=figures),
            environment=environment,
            device=device,
            attribution=attribution,
            elapsed_s=answer.elapsed_s,
            cpu_s=cpu_s,
            judged=self._job.setup == Setup() and may_judge(result, attribution),
            trigger=self._job.trigger,
        )
