"""From a child's events to records: each result finds its request, each request its record."""

import msgspec
import pytest

from agent.model.probe import (
    ChildEvent,
    Device,
    Done,
    Environment,
    Hello,
    Phase,
    ProbeRequest,
    ProbeResult,
)
from agent.probes.attribution import CardSample
from agent.probes.child import ChildExit
from agent.probes.collector import Collector
from agent.probes.decode import BadResultError
from agent.probes.job import Job, Setup
from agent.probes.outcome import Failure
from tests.support.clock import FakeClock
from tests.unit.agent.probes.cards import UUID, card

CRASH = Failure("error", "crashed:SIGSEGV")
ON_CARD = Hello(1, Environment(tensorflow="2.21.0"), Device("gpu", uuid=UUID, pci_bus_id="0000:1b:00.0"))
MATMUL = ProbeResult(probe="matmul", status="ok", dtype="bf16", value=6.6e14, unit="flop/s")


def collected(*events: ChildEvent, requests: tuple[ProbeRequest, ...], on_card: bool = True) -> list[tuple[str, ...]]:
    """Return (dtype, status, reason) of the records that the events and a crash give."""
    job = Job(requests=requests, card=card() if on_card else None, trigger="command")
    collector = Collector(job, FakeClock(), lambda _event: None)
    for event in events:
        collector.take(event)
    records = collector.records(CRASH, (), ChildExit("exited", code=-11, cpu_s=2.0))
    return [(r.result.dtype, r.result.status, r.result.reason) for r in records]


BF16 = ProbeRequest("matmul", "bf16")
FP64 = ProbeRequest("matmul", "fp64")


def test_requests_without_a_result_get_the_failure() -> None:
    """What was answered stays answered."""
    assert collected(ON_CARD, Phase(0, "timed", 1.0), MATMUL, requests=(BF16, FP64)) == [
        ("bf16", "ok", ""),
        ("fp64", "error", "crashed:SIGSEGV"),
    ]


def test_failures_before_any_phase_go_to_one_request_each() -> None:
    """A child that cannot start answers every request at once."""
    failed = ProbeResult(probe="matmul", status="error", reason="tensorflow_missing")
    events = [msgspec.structs.replace(failed, dtype=dtype) for dtype in ("bf16", "bf16", "fp64")]
    assert collected(ON_CARD, *events, requests=(BF16, BF16, FP64)) == [
        ("bf16", "error", "tensorflow_missing"),
        ("bf16", "error", "tensorflow_missing"),
        ("fp64", "error", "tensorflow_missing"),
    ]


def test_a_failure_without_phases_is_the_next_requests() -> None:
    """An unsupported data type is found before anything is timed."""
    unsupported = ProbeResult(probe="matmul", status="skipped", reason="unsupported", dtype="fp64")
    assert collected(ON_CARD, Phase(0, "timed", 1.0), MATMUL, unsupported, requests=(BF16, FP64)) == [
        ("bf16", "ok", ""),
        ("fp64", "skipped", "unsupported"),
    ]


def test_one_request_may_have_several_figures() -> None:
    """Bandwidth comes in variants."""
    figure = ProbeResult(probe="bandwidth", status="ok", variant="copy", value=1e12, unit="byte/s")
    triad = msgspec.structs.replace(figure, variant="triad")
    found = collected(ON_CARD, Phase(0, "copy", 1.0), figure, triad, requests=(ProbeRequest("bandwidth"),))
    assert found == [("", "ok", ""), ("", "ok", "")]


@pytest.mark.parametrize("event", [Phase(2, "timed", 1.0), ProbeResult(probe="vgg16", status="timeout")])
def test_answers_nobody_asked_for_break_the_form(event: ChildEvent) -> None:
    """A phase or result of no request is refused."""
    with pytest.raises(BadResultError):
        collected(ON_CARD, event, requests=(BF16, FP64))


def test_a_value_from_another_card_is_no_value() -> None:
    """The number is discarded, the reason is said."""
    other = msgspec.structs.replace(ON_CARD, device=Device("gpu", uuid="GPU-f", pci_bus_id="0000:1b:00.0"))
    assert collected(other, MATMUL, requests=(BF16,)) == [("bf16", "error", "wrong_device")]


def test_a_value_without_a_hello_is_no_value() -> None:
    """Nobody knows where it was made."""
    assert collected(MATMUL, requests=(BF16,)) == [("bf16", "error", "bad_result")]


def test_records_carry_card_software_and_cost() -> None:
    """Driver from the card where the child does not know it, CPU time from its own account."""
    job = Job(requests=(BF16,), card=card(index=3), trigger="suspicion")
    clock = FakeClock(wall_s=5000.0)
    collector = Collector(job, clock, lambda _event: None)
    for event in (ON_CARD, MATMUL, Done(cpu_s=7.0)):
        clock.advance(2.0)
        collector.take(event)
    (record,) = collector.records(CRASH, (), ChildExit("done", code=0, cpu_s=6.9))
    assert (record.gpu, record.uuid, record.trigger) == (3, UUID, "suspicion")
    assert (record.wall_s, record.elapsed_s, record.cpu_s) == (5004.0, 4.0, 7.0)
    assert (record.environment.tensorflow, record.environment.driver) == ("2.21.0", "580.159.04")
    assert not record.judged


@pytest.mark.parametrize(("setup", "judged"), [(Setup(), True), (Setup(memory_limit_bytes=2**34), False)])
def test_only_the_usual_setup_is_judged(setup: Setup, *, judged: bool) -> None:
    """A card that plays a smaller one, or shares its work, is not compared with itself."""
    collector = Collector(
        Job(requests=(BF16,), card=card(), trigger="bench", setup=setup), FakeClock(), lambda _event: None
    )
    window = msgspec.structs.replace(MATMUL, window_start_monotonic_s=1.0, window_end_monotonic_s=2.0)
    for event in (ON_CARD, window):
        collector.take(event)
    samples = [CardSample(1.0 + index / 10, card()) for index in range(10)]
    (record,) = collector.records(CRASH, samples, None)
    assert record.judged is judged


def test_several_cards_share_a_value() -> None:
    """What is told per watt is one card's part of the throughput over one card's power."""
    setup = Setup(companions=(card(index=1, uuid="GPU-b"),))
    collector = Collector(
        Job(requests=(BF16,), card=card(), trigger="bench", setup=setup), FakeClock(), lambda _event: None
    )
    window = msgspec.structs.replace(MATMUL, window_start_monotonic_s=1.0, window_end_monotonic_s=2.0)
    for event in (ON_CARD, window):
        collector.take(event)
    (record,) = collector.records(CRASH, [CardSample(1.5, card(power_instant_watts=500.0))], None)
    assert record.result.value is not None
    assert record.result.figures["value_per_watt"] == record.result.value / 2 / 500.0


def test_cpu_records_have_no_card() -> None:
    """The CPU has no index; its UUID is the word cpu."""
    job = Job(requests=(BF16,), card=None, trigger="schedule")
    collector = Collector(job, FakeClock(), lambda _event: None)
    (record,) = collector.records(CRASH, (), None)
    assert (record.gpu, record.uuid, record.cpu_s) == (None, "cpu", None)


def test_events_are_passed_on() -> None:
    """Whoever shows progress sees every event."""
    seen: list[ChildEvent] = []
    collector = Collector(Job(requests=(BF16,), card=card(), trigger="command"), FakeClock(), seen.append)
    for event in (ON_CARD, Phase(0, "timed", 1.0), MATMUL):
        collector.take(event)
    assert seen == [ON_CARD, Phase(0, "timed", 1.0), MATMUL]
