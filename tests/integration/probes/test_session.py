"""Probing without an agent: cards are seen at rest first, several are measured side by side."""

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from agent.clock import SystemClock
from agent.config.settings import DegradedSettings, ProbeSettings
from agent.errors import ConfigError
from agent.model.probe import ChildEvent, Phase, ProbeRecord, ProbeRequest
from agent.probes.job import Setup
from agent.probes.quick import judge_records, measure_cards
from agent.probes.session import ProbeSession
from tests.integration.probes.conftest import CARD_UUID, STUB
from tests.integration.probes.sources import RESTING, SECOND_UUID, LiveSource
from tests.support.records import reference

SETTINGS = ProbeSettings(host_memory_mib=0, trust_pids="yes")
MATMUL = (ProbeRequest("matmul", "bf16"),)


@pytest.fixture
def source() -> LiveSource:
    """Return a card at rest."""
    return LiveSource()


@pytest.fixture
def session(source: LiveSource, tmp_path: Path) -> Iterator[ProbeSession]:
    """Return a session that reads the card."""
    made = ProbeSession(SETTINGS, source, SystemClock(), tmp_path, STUB)
    made.start()
    yield made
    made.close()


def words(records: tuple[ProbeRecord, ...]) -> list[tuple[str, str]]:
    """Return status and reason of each record."""
    return [(record.result.status, record.result.reason) for record in records]


def test_card_at_rest_is_measured(session: ProbeSession) -> None:
    """A second of rest is enough for who asks now."""
    start_s = time.monotonic()
    assert [card.identity.uuid for card in session.settle(10.0)] == [CARD_UUID]
    assert 0.9 < time.monotonic() - start_s < 8.0
    assert words(session.run(MATMUL, CARD_UUID)) == [("ok", "")]


def test_card_in_use_is_left_alone_unless_forced(session: ProbeSession, source: LiveSource) -> None:
    """A forced result says that somebody was there."""
    source.add_process(1)
    session.settle(1.0)
    assert words(session.run(MATMUL, CARD_UUID)) == [("skipped", "foreign_process")]
    (record,) = session.run(MATMUL, CARD_UUID, force=True)
    assert record.result.status == "ok"
    assert record.attribution is not None
    assert record.attribution.contended
    assert not record.judged


def test_our_own_child_is_no_tenant(session: ProbeSession, source: LiveSource) -> None:
    """The process that the driver then shows is ours."""
    session.settle(10.0)

    def show_child(event: ChildEvent) -> None:
        if isinstance(event, Phase):
            source.add_process(next(iter(own_children())))

    slow = (ProbeRequest("matmul", "bf16", options={"behaviour": "slow"}),)
    (record,) = session.run(slow, CARD_UUID, on_event=show_child)
    assert record.attribution is not None
    assert not record.attribution.contended
    assert record.judged


SECOND = msgspec.structs.replace(RESTING, identity=msgspec.structs.replace(RESTING.identity, index=1, uuid=SECOND_UUID))


def test_a_job_over_two_cards_needs_both_at_rest(tmp_path: Path) -> None:
    """The child sees both, the first one first; a companion in use is a card in use."""
    source = LiveSource(SECOND)
    session = ProbeSession(SETTINGS, source, SystemClock(), tmp_path, STUB)
    session.start()
    session.settle(10.0)
    with capture_logs() as logs:
        show = (ProbeRequest("resnet50", "bf16", options={"behaviour": "show_and_fail"}),)
        setup = Setup(companions=(SECOND,), memory_limit_bytes=2**34)
        (record,) = session.run(show, CARD_UUID, setup=setup, trigger="bench")
    shown = json.loads(next(entry["output"] for entry in logs if entry["event"] == "probe_failed"))
    assert shown["env"]["CUDA_VISIBLE_DEVICES"] == f"{CARD_UUID},{SECOND_UUID}"
    told = {name: shown["spec"][name] for name in ("companion_uuids", "replicas", "memory_limit_bytes", "reserve_all")}
    assert told == {
        "companion_uuids": [SECOND_UUID], "replicas": 2, "memory_limit_bytes": 2**34, "reserve_all": False,
    }  # fmt: skip
    assert record.trigger == "bench"
    source.add_process(1)
    time.sleep(0.5)
    assert words(session.run(MATMUL, SECOND_UUID, setup=Setup(companions=(RESTING,)))) == [
        ("skipped", "foreign_process")
    ]
    stranger = msgspec.structs.replace(SECOND, identity=msgspec.structs.replace(SECOND.identity, uuid="GPU-c"))
    assert words(session.run(MATMUL, SECOND_UUID, setup=Setup(companions=(stranger,)))) == [("skipped", "no_telemetry")]
    session.close()


def own_children() -> list[int]:
    """Return the ids of this process's children that lead a session."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and fields[3] == entry.name:
                found.append(int(entry.name))
    return found


def test_unknown_names_are_refused_with_the_known_ones(session: ProbeSession) -> None:
    """By index or UUID."""
    assert [card.identity.index for card in session.choose(["0"], 10.0)] == [0]
    assert len(session.choose([CARD_UUID, "0"], 1.0)) == 1
    with pytest.raises(ConfigError, match=CARD_UUID):
        session.choose(["7"], 1.0)


def test_cpu_needs_no_cards(tmp_path: Path) -> None:
    """Without a source there is nothing to read."""
    session = ProbeSession(SETTINGS, None, SystemClock(), tmp_path, STUB)
    session.start()
    assert session.settle(5.0) == ()
    assert words(session.run(MATMUL, None)) == [("ok", "")]
    session.close()


def test_idle_card_is_judged_by_its_reference(session: ProbeSession) -> None:
    """From the reading to the exit code."""
    clock = SystemClock()
    cards = session.choose((), 10.0)
    records = measure_cards(session, cards, clock, clock.monotonic_s() + 20.0, at_once=2)
    known = reference(uuid=CARD_UUID, shape="64x64x64", power_limit_watts=None)
    node = judge_records(cards, records, (known,), DegradedSettings())
    record = records[CARD_UUID]
    assert record.result.status == "ok"
    assert record.judged
    assert (node.exit_code, node.cards[0].spot.cause) == (0, "own_reference")


def test_no_time_left_starts_no_child(session: ProbeSession, source: LiveSource) -> None:
    """Better not judged than late."""
    clock = SystemClock()
    records = measure_cards(session, session.choose((), 10.0), clock, clock.monotonic_s() + 4.0, at_once=1)
    assert words((records[CARD_UUID],)) == [("timeout", "deadline")]
    assert source.bursts == 0


def test_interrupt_ends_a_running_child(session: ProbeSession, source: LiveSource) -> None:
    """Whoever types Ctrl-C does not wait for a hung child."""
    session.settle(10.0)
    hang = (ProbeRequest("matmul", "bf16", options={"behaviour": "hang_deaf"}),)
    found: list[tuple[str, str]] = []
    thread = threading.Thread(target=lambda: found.extend(words(session.run(hang, CARD_UUID))))
    thread.start()
    while source.bursts < 3:
        time.sleep(0.02)
    session.interrupt()
    thread.join(5.0)
    assert found == [("aborted", "shutting_down")]
