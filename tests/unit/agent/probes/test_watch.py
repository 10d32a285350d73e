"""When a running probe must end: for a tenant, a lost card, blindness, or because it is told to."""

from collections.abc import Collection, Sequence

from agent.model.probe import ProbeRequest
from agent.model.snapshot import Card
from agent.nvml.source import GpuReading
from agent.probes.job import Job, Setup
from agent.probes.watch import READER_DOWN_S, CardWatch
from tests.support.clock import FakeClock
from tests.unit.agent.probes.cards import card, compute


class Script:
    """A source whose bursts come from a list; past its end no answer comes."""

    def __init__(self, *bursts: Card | None) -> None:
        """Take what each burst answers."""
        self._bursts = list(bursts)

    def begin_tick(self) -> None:
        """Not asked here."""

    def end_tick(self, until_monotonic_s: float) -> GpuReading:
        """Not asked here."""
        raise AssertionError(until_monotonic_s)

    def burst(self, uuid: str, timeout_s: float) -> Card | None:
        """Answer the next one."""
        assert uuid
        assert timeout_s < 1
        return self._bursts.pop(0) if self._bursts else None

    def pause(self, uuids: Collection[str]) -> None:
        """Not asked here."""

    def resume(self, uuids: Collection[str]) -> None:
        """Not asked here."""

    def close(self, timeout_s: float) -> None:
        """Not asked here."""


def strangers(seen: Card) -> Sequence[int]:
    """Call every process a tenant."""
    return [process.pid for process in seen.processes or ()]


def watch(
    *bursts: Card | None,
    clock: FakeClock,
    yield_to_tenants: bool = True,
    abort: str = "",
    companions: tuple[Card, ...] = (),
) -> CardWatch:
    """Return the watch of a run on a card, and on its companions."""
    job = Job(
        requests=(ProbeRequest("matmul"),), card=card(), trigger="command", yield_to_tenants=yield_to_tenants,
        setup=Setup(companions=companions),
    )  # fmt: skip
    return CardWatch(job, Script(*bursts), clock, strangers, lambda: abort)


def test_a_quiet_card_is_sampled() -> None:
    """Each look is one sample."""
    clock = FakeClock()
    looking = watch(card(), card(), clock=clock)
    assert [looking.ask(7), looking.ask(7)] == ["", ""]
    assert len(looking.samples) == 2
    assert looking.pid == 7


def test_a_tenant_ends_the_run_at_once() -> None:
    """The first look that shows somebody is the last."""
    assert watch(card(processes=(compute(1),)), clock=FakeClock()).ask(7) == "tenant_arrived"


def test_a_run_that_was_asked_for_goes_on_beside_a_tenant() -> None:
    """The sample remembers who was there."""
    looking = watch(card(processes=(compute(1),)), clock=FakeClock(), yield_to_tenants=False)
    assert looking.ask(7) == ""
    assert looking.samples[0].tenant


def test_a_lost_card_ends_the_run() -> None:
    """There is nothing left to measure."""
    assert watch(card(lost="GPU_IS_LOST"), clock=FakeClock()).ask(7) == "gpu_lost"


def test_blindness_ends_the_run_after_a_moment() -> None:
    """One missed answer is nothing, some seconds without any are too many."""
    clock = FakeClock()
    looking = watch(card(), clock=clock)
    assert looking.ask(7) == ""
    assert looking.ask(7) == ""
    clock.advance(READER_DOWN_S + 0.1)
    assert looking.ask(7) == "reader_down"


def test_companions_are_watched_as_well() -> None:
    """A tenant on one of them, or its loss, is the run's; the samples are the first card's."""
    second = card(index=1, uuid="GPU-b")
    tenant = watch(card(), card(uuid="GPU-b", processes=(compute(1),)), clock=FakeClock(), companions=(second,))
    assert tenant.ask(7) == "tenant_arrived"
    assert (tenant.samples[0].card, tenant.samples[0].tenant) == (card(), True)
    lost = watch(card(), card(uuid="GPU-b", lost="GPU_IS_LOST"), clock=FakeClock(), companions=(second,))
    assert lost.ask(7) == "gpu_lost"
    clock = FakeClock()
    unseen = watch(card(), None, card(), None, clock=clock, companions=(second,))
    assert unseen.ask(7) == ""
    clock.advance(READER_DOWN_S + 0.1)
    assert unseen.ask(7) == "reader_down"


def test_who_stops_the_agent_or_pauses_the_card_is_obeyed_first() -> None:
    """No look is taken then."""
    looking = watch(card(), clock=FakeClock(), abort="maintenance")
    assert looking.ask(7) == "maintenance"
    assert looking.samples == []
