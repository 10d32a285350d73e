"""The probe service with stub children: who is probed when, who is left alone, and what is counted."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from agent.clock import SystemClock
from agent.config.settings import PipelineSettings, ProbeSettings
from agent.model.probe import ProbeRecord, ProbeRequest
from agent.model.snapshot import GpuProcess, Snapshot
from agent.probes.service import ProbeService
from tests.integration.probes.conftest import CARD_UUID, STUB
from tests.integration.probes.sources import RESTING, LiveSource
from tests.integration.probes.test_schedule import wait_for

QUICK = ProbeSettings(
    interval_s=5, first_delay_s=0.3, idle_s=0.2, host_memory_mib=0, daily=False, trust_pids="yes", duty_budget=1.0
)
HANG = (ProbeRequest("matmul", "bf16", options={"behaviour": "hang_deaf"}),)


class Node:
    """A service on one card, ticked as the agent's loop does."""

    def __init__(self, directory: Path) -> None:
        """Take where the state lies."""
        self.source = LiveSource()
        self.clock = SystemClock()
        self.records: list[ProbeRecord] = []
        self.paused: set[str] = set()
        self.allocated: set[str] = set()
        self._directory = directory
        self.service: ProbeService

    def start(self, settings: ProbeSettings = QUICK) -> "Node":
        """Make and start the service."""
        self.service = ProbeService(
            settings,
            PipelineSettings(),
            self.source,
            self.clock,
            self._directory,
            self.records.append,
            paused=lambda: self.paused,
            allocated=lambda: self.allocated,
            workloads=STUB,
        )
        self.service.start()
        return self

    def tick(self) -> None:
        """Read the card and tell the service."""
        now_s = self.clock.monotonic_s()
        reading = self.source.end_tick(now_s + 1)
        self.service.observe(Snapshot(now_s, self.clock.wall_s(), cards=reading.cards))

    def tick_until(self, condition: Callable[[], bool]) -> None:
        """Tick ten times a second until something holds."""

        def ticked() -> bool:
            self.tick()
            time.sleep(0.09)
            return condition()

        wait_for(ticked, 20.0)

    def words(self) -> list[tuple[str, str, str]]:
        """Return probe, status and reason of all records."""
        return [(r.result.probe, r.result.status, r.result.reason) for r in self.records]

    def count(self, name: str, *labels: str) -> float | None:
        """Return one of the counters."""
        found = (s.value for s in self.service.counts() if s.name == name and s.labels == labels)
        return next(found, None)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Return a node whose service is stopped in the end."""
    made = Node(tmp_path / "state")
    yield made
    made.service.stop()


def test_idle_card_is_probed_by_schedule(node: Node) -> None:
    """Both judged probes in one child, kept, counted, handed on."""
    node.start().tick_until(lambda: len(node.records) >= 2)
    assert node.words() == [("matmul", "ok", ""), ("resnet50", "ok", "")]
    assert [record.uuid for record in node.service.records()] == [CARD_UUID] * 2
    assert node.count("heatsoak_probe_runs_total", "matmul", "ok", "") == 1.0
    assert node.count("heatsoak_probe_runs_total", "matmul", "error", "oom") == 0.0
    assert node.count("heatsoak_probe_busy_seconds_total", "0", CARD_UUID) is not None
    due_s = node.count("heatsoak_probe_next_run_timestamp_seconds")
    assert due_s is not None
    assert 0 < due_s - time.time() < 10


def test_busy_card_is_left_alone(node: Node) -> None:
    """No child starts; the reason is counted."""
    node.source.add_process(1)
    node.start().tick_until(lambda: len(node.records) >= 2)
    assert node.words()[0] == ("matmul", "skipped", "foreign_process")
    assert node.count("heatsoak_probe_runs_total", "matmul", "skipped", "foreign_process") == 1.0
    assert node.source.bursts == 0
    assert node.service.records() == ()


def test_a_card_that_was_busy_is_probed_once_it_is_idle(node: Node) -> None:
    """Without waiting for the next run by the clock."""
    node.source.add_process(1)
    node.start(msgspec.structs.replace(QUICK, interval_s=60)).tick_until(lambda: len(node.records) >= 2)
    assert node.words() == [("matmul", "skipped", "foreign_process"), ("resnet50", "skipped", "foreign_process")]
    node.source.show(RESTING)
    began_s = node.clock.monotonic_s()
    node.tick_until(lambda: len(node.records) >= 4)
    assert node.words()[2:] == [("matmul", "ok", ""), ("resnet50", "ok", "")]
    assert node.clock.monotonic_s() - began_s < 20


@pytest.mark.parametrize("who", ["paused", "allocated"])
def test_cards_that_are_paused_or_given_away_are_left_alone(node: Node, who: str) -> None:
    """An operator and a scheduler are obeyed."""
    getattr(node, who).add(CARD_UUID)
    node.start().tick_until(lambda: len(node.records) >= 1)
    assert node.words()[0][2] == {"paused": "maintenance", "allocated": "allocated"}[who]


def test_short_host_memory_starts_no_child(node: Node) -> None:
    """Rather no number than a host out of memory."""
    node.start(msgspec.structs.replace(QUICK, host_memory_mib=1e9)).tick_until(lambda: len(node.records) >= 1)
    assert node.words()[0] == ("matmul", "skipped", "host_memory")


def test_used_up_duty_starts_no_scheduled_child(node: Node) -> None:
    """A budget of nothing allows nothing by schedule, and does not hinder a suspicion."""
    node.start(msgspec.structs.replace(QUICK, duty_budget=0.0)).tick_until(lambda: len(node.records) >= 1)
    assert node.words()[0] == ("matmul", "skipped", "duty_budget")
    assert node.service.why_not(CARD_UUID, scheduled=False) is None


def test_untrusted_pids_keep_probes_off(node: Node) -> None:
    """Idle cannot be known."""
    node.start(msgspec.structs.replace(QUICK, trust_pids="no")).tick_until(lambda: len(node.records) >= 1)
    assert node.words()[0] == ("matmul", "skipped", "no_host_pid")


def test_stale_readings_keep_probes_off(node: Node) -> None:
    """Nobody knows what the card does now."""
    node.start()
    node.tick()
    assert node.service.why_not("GPU-unknown") == "no_telemetry"


def test_broken_environment_backs_off_and_blames_no_card(node: Node) -> None:
    """The next run is skipped, the node's trouble is told."""
    node.start(msgspec.structs.replace(QUICK, python="/nowhere/python"))
    node.tick_until(lambda: len(node.records) >= 2)
    assert {words[1:] for words in node.words()} == {("error", "interpreter_missing")}
    assert node.service.environment_error == "interpreter_missing"
    assert node.count("heatsoak_probe_environment_broken") == 1.0


def test_stopping_ends_a_running_child_at_once(node: Node) -> None:
    """However deaf it is."""
    node.start(msgspec.structs.replace(QUICK, enabled=False))
    node.tick()
    thread = threading.Thread(target=lambda: node.service.run_now(HANG, CARD_UUID, "command", lambda _event: None))
    thread.start()
    wait_for(lambda: node.source.bursts > 3)
    start_s = time.monotonic()
    node.service.stop()
    assert time.monotonic() - start_s < 2.0
    thread.join(5.0)
    assert node.words() == [("matmul", "aborted", "shutting_down")]


def test_disabled_service_schedules_nothing(node: Node) -> None:
    """No job, no series of results that cannot come."""
    node.start(msgspec.structs.replace(QUICK, enabled=False))
    node.tick()
    assert node.count("heatsoak_probe_next_run_timestamp_seconds") is None
    assert node.count("heatsoak_probe_runs_total", "matmul", "ok", "") is None


def test_cpu_is_probed_only_where_asked(node: Node) -> None:
    """No card is needed, and none is touched."""
    node.source.show(None)
    node.start(msgspec.structs.replace(QUICK, device="cpu")).tick_until(lambda: len(node.records) >= 2)
    assert [(r.uuid, r.gpu, r.result.dtype) for r in node.records] == [("cpu", None, "fp32")] * 2


def test_node_without_a_card_probes_nothing(node: Node) -> None:
    """Probes never fall back to the CPU unasked."""
    node.source.show(None)
    node.start()
    for _ in range(8):
        node.tick()
        time.sleep(0.1)
    assert node.records == []


def test_other_settings_start_the_schedule_anew(node: Node) -> None:
    """A reload that changes nothing leaves it alone."""
    node.start(msgspec.structs.replace(QUICK, first_delay_s=1000.0))
    node.tick()
    before_s = node.count("heatsoak_probe_next_run_timestamp_seconds")
    node.service.reconfigure(msgspec.structs.replace(QUICK, first_delay_s=1000.0), PipelineSettings())
    node.tick()
    after_s = node.count("heatsoak_probe_next_run_timestamp_seconds")
    assert before_s is not None
    assert after_s == pytest.approx(before_s, abs=0.1)
    node.service.reconfigure(QUICK, PipelineSettings())
    node.tick_until(lambda: len(node.records) >= 2)
    assert node.words() == [("matmul", "ok", ""), ("resnet50", "ok", "")]


def test_suspicion_plans_two_more_runs(node: Node) -> None:
    """In 5 and in 15 minutes, once however often it is raised."""
    node.start(msgspec.structs.replace(QUICK, first_delay_s=10_000.0))
    node.tick()
    for _ in range(3):
        node.service.suspect(CARD_UUID)
    due_s = node.count("heatsoak_probe_next_run_timestamp_seconds")
    assert due_s is not None
    assert due_s - time.time() == pytest.approx(300.0, abs=5.0)


def test_asked_for_run_on_an_unknown_card_says_so(node: Node) -> None:
    """No child is started for a card nobody sees."""
    node.start(msgspec.structs.replace(QUICK, enabled=False))
    (record,) = node.service.run_now(HANG, "GPU-unknown", "command", lambda _event: None)
    assert (record.result.status, record.result.reason) == ("skipped", "no_telemetry")


def test_pipeline_waits_for_every_card(node: Node) -> None:
    """One busy neighbour is enough to leave the node's CPUs alone."""
    busy = msgspec.structs.replace(
        RESTING,
        identity=msgspec.structs.replace(RESTING.identity, index=1, uuid="GPU-busy"),
        processes=(GpuProcess(1, "compute", 1),),
    )
    node.start(msgspec.structs.replace(QUICK, daily=True, first_delay_s=0.0, interval_s=5.0))

    def tick() -> bool:
        now_s = node.clock.monotonic_s()
        node.service.observe(Snapshot(now_s, node.clock.wall_s(), cards=(RESTING, busy)))
        time.sleep(0.1)
        return ("pipeline", "skipped", "host_busy") in node.words()

    wait_for(tick, 30.0)
