"""The client keeps serving what it can while drivers hang, crash, vanish and lie."""

import threading
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from agent.config.settings import NvmlSettings
from agent.model.snapshot import Card
from agent.nvml.client import ReaderClient
from agent.nvml.source import GpuReading
from tests.support.clock import FakeClock
from tests.support.fakereader import FakeDriver, uuid_of


class Rig:
    """A client with its driver, ticking once a second like the agent's loop."""

    def __init__(self, cards: int = 2, settings: NvmlSettings | None = None) -> None:
        self.clock = FakeClock()
        self.driver = FakeDriver(self.clock, cards)
        self.client = ReaderClient(settings or NvmlSettings(), self.clock, self.driver.spawn)
        self.born_s = self.clock.monotonic_s()

    def tick(self) -> GpuReading:
        """Run one tick and let the rest of its second pass."""
        start_s = self.clock.monotonic_s()
        self.client.begin_tick()
        assert self.clock.monotonic_s() - start_s <= 0.1, "begin_tick waited"
        reading = self.client.end_tick(start_s + 0.5)
        assert self.clock.monotonic_s() - start_s <= 0.75, "end_tick waited beyond its limit"
        self.clock.advance(start_s + 1.0 - self.clock.monotonic_s())
        return reading

    def ticks(self, count: int) -> GpuReading:
        """Run several ticks; return the last reading."""
        for _ in range(count - 1):
            self.tick()
        return self.tick()

    def until(self, condition: Callable[[GpuReading], bool], most: int) -> int:
        """Return after how many ticks ``condition`` holds."""
        for count in range(1, most + 1):
            if condition(self.tick()):
                return count
        pytest.fail(f"the condition did not hold within {most} ticks")


def keys(card: Card) -> set[str]:
    """Return the keys of a card's values that come from the driver."""
    return set(card.values) & {"utilization_ratio", "temperature_celsius", "power_watts", "energy_joules_total"}


def test_first_tick_serves_every_card() -> None:
    """Identity, values in their units, processes and health are there after one tick."""
    reading = Rig().tick()
    assert [card.identity.uuid for card in reading.cards] == ["GPU-0", "GPU-1"]
    assert reading.cards[0].values["power_watts"] == 300
    assert reading.cards[0].values["utilization_ratio"] == 0.5
    assert reading.cards[0].values["process_memory_bytes"] == 1024
    assert reading.nvml.up
    assert (reading.nvml.error, reading.nvml.advice, reading.nvml.driver) == ("", "", "580.1")
    assert (reading.health.ok, reading.health.attempts) == (True, 1)


def test_before_the_first_tick_the_driver_is_being_initialised() -> None:
    """While nothing has answered yet, the driver is not up, and the reason says so."""
    rig = Rig()
    rig.driver.hang_in_init = True
    nvml = rig.tick().nvml
    assert (nvml.up, nvml.error) == (False, "STARTING")


def test_fast_values_are_asked_each_tick_and_slow_ones_each_ten_seconds() -> None:
    """Each tier is read at its own pace."""
    rig = Rig(cards=1)
    rig.ticks(21)
    reads = [command for command in rig.driver.children[0].commands if hasattr(command, "tiers")]
    assert len(reads) == 21
    assert [count for count, read in enumerate(reads) if "slow" in read.tiers] == [0, 10, 20]
    assert [count for count, read in enumerate(reads) if "samples" in read.tiers] == list(range(0, 21, 2))
    assert [count for count, read in enumerate(reads) if "static" in read.tiers] == [0]


@pytest.mark.parametrize("error", ["LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED", "UNKNOWN", "LIB_RM_VERSION_MISMATCH"])
def test_init_failure_is_named_and_tried_again_with_back_off(error: str) -> None:
    """Each try is a new process, 5, 10, 20, 40, then every 60 s; the error comes with its likely cause."""
    rig = Rig()
    rig.driver.init_error = error
    starts = []
    for second in range(300):
        before = len(rig.driver.children)
        reading = rig.tick()
        starts += [second] * (len(rig.driver.children) - before)
        assert (reading.nvml.up, reading.nvml.error, reading.cards) == (False, error, ())
        assert len(reading.nvml.advice) > 20
    waits = [starts[turn + 1] - starts[turn] for turn in range(6)]
    assert waits == pytest.approx([5, 10, 20, 40, 60, 60], abs=1)
    assert rig.driver.alive == 0


def test_cards_are_picked_up_when_the_driver_comes() -> None:
    """No restart of the agent is needed."""
    rig = Rig()
    rig.driver.init_error = "DRIVER_NOT_LOADED"
    rig.ticks(3)
    rig.driver.init_error = ""
    assert rig.until(lambda reading: reading.nvml.up and len(reading.cards) == 2, 60) <= 60


def test_no_card_counts_as_down() -> None:
    """A driver without cards is tried again, and the reader lets go of it meanwhile."""
    rig = Rig(cards=0)
    nvml = rig.tick().nvml
    assert (nvml.up, nvml.error) == (False, "NO_GPU")
    assert rig.driver.alive == 0
    rig.driver.cards = 1
    rig.until(lambda reading: reading.nvml.up, 6)


def test_down_is_logged_once() -> None:
    """One warning with the likely cause, however long it lasts; one line when it is up again."""
    rig = Rig()
    rig.driver.init_error = "DRIVER_NOT_LOADED"
    with capture_logs() as logs:
        rig.ticks(30)
        rig.driver.init_error = ""
        rig.ticks(60)
    assert [(line["log_level"], line["event"]) for line in logs] == [("warning", "nvml_down"), ("info", "nvml_up")]
    assert "modprobe" in logs[0]["likely_cause"]


def test_mismatch_is_an_error_in_the_log() -> None:
    """A half-finished driver upgrade needs an operator, and the line says what for."""
    rig = Rig()
    rig.driver.init_error = "LIB_RM_VERSION_MISMATCH"
    with capture_logs() as logs:
        rig.ticks(10)
    assert [line["log_level"] for line in logs] == ["error"]
    assert "reboot" in logs[0]["likely_cause"]


def test_hanging_card_costs_the_others_at_most_three_ticks() -> None:
    """The reader is replaced by one that leaves the card out; the card keeps its identity and says why."""
    rig = Rig(cards=4)
    rig.ticks(15)
    rig.driver.hung = {2}
    others = [0, 1, 3]
    missed = 0
    for _ in range(10):
        reading = rig.tick()
        assert reading.nvml.up
        missed += any("utilization_ratio" not in reading.cards[index].values for index in others)
    assert missed <= 3
    card = reading.cards[2]
    assert (card.lost, dict(card.values), card.identity.uuid) == ("HUNG", {}, uuid_of(2))
    assert card.hung_s == pytest.approx(9.5, abs=1.5)
    assert (reading.nvml.restarts, reading.nvml.hung_s, reading.health.errors["hung"]) == (1, 0, 1)
    assert rig.driver.alive == 1


def test_hung_seconds_rise_while_a_call_is_under_way() -> None:
    """Until the deadline the silence is already visible."""
    rig = Rig(settings=NvmlSettings(read_deadline_s=30))
    rig.tick()
    rig.driver.hung = {0}
    seen = [rig.tick().nvml.hung_s for _ in range(5)]
    assert seen == pytest.approx([0.5, 1.5, 2.5, 3.5, 4.5])


def test_hung_card_is_tried_again_with_back_off_and_comes_back() -> None:
    """Tries come after 60 and then 120 s; each costs the others at most three ticks; success clears it."""
    rig = Rig(cards=2)
    rig.tick()
    rig.driver.hung = {1}
    rig.ticks(300)
    assert len(rig.driver.children) == 1 + 1 + 2
    rig.driver.hung = set()
    ticks = rig.until(lambda reading: not reading.cards[1].lost and bool(reading.cards[1].values), 300)
    assert ticks <= 242
    assert rig.driver.alive == 1
    assert len(rig.driver.children) == 4, "coming back needs no new reader"


def test_card_that_hangs_at_the_start_does_not_hide_the_others() -> None:
    """A card that was never identified is listed as hung, with its index alone."""
    rig = Rig(cards=3)
    rig.driver.hung = {1}
    rig.until(lambda reading: len(reading.cards) == 3 and reading.nvml.up, 10)
    reading = rig.tick()
    assert [(card.identity.uuid, card.lost) for card in reading.cards] == [("GPU-0", ""), ("", "HUNG"), ("GPU-2", "")]


def test_hanging_init_is_replaced_after_its_own_deadline() -> None:
    """Initialisation may take long, but not for ever, and its silence is counted all the while."""
    rig = Rig(settings=NvmlSettings(init_deadline_s=20))
    rig.driver.hang_in_init = True
    rig.ticks(19)
    assert len(rig.driver.children) == 1
    reading = rig.ticks(20)
    assert len(rig.driver.children) == 2
    assert reading.nvml.hung_s == pytest.approx(38.5, abs=1)
    assert (reading.nvml.up, reading.nvml.error) == (False, "HUNG")
    assert rig.driver.alive == 1


def test_unkillable_reader_is_left_and_counted() -> None:
    """A replacement runs beside one that cannot be killed; it is reaped when the driver lets go."""
    rig = Rig(cards=2)
    rig.tick()
    rig.driver.hung, rig.driver.unkillable = {1}, True
    with capture_logs() as logs:
        reading = rig.ticks(10)
        assert (reading.nvml.stuck_readers, rig.driver.alive) == (1, 2)
        assert "utilization_ratio" in reading.cards[0].values
        rig.driver.children[0].die("signal 9")
        assert rig.tick().nvml.stuck_readers == 0
    assert [line["event"] for line in logs if "stuck" in line["event"]] == ["reader_stuck", "reader_unstuck"]


def test_unkillable_readers_are_never_multiplied() -> None:
    """When the replacement gets stuck as well, no third one is started until one of them goes."""
    rig = Rig(cards=3)
    rig.tick()
    rig.driver.hung, rig.driver.unkillable = {1}, True
    rig.ticks(5)
    rig.driver.hung = {1, 2}
    reading = rig.ticks(120)
    assert (len(rig.driver.children), rig.driver.alive, reading.nvml.stuck_readers) == (2, 2, 2)
    assert (reading.nvml.up, reading.nvml.error) == (False, "HUNG")
    rig.driver.hung, rig.driver.unkillable = set(), False
    rig.driver.children[0].die("signal 9")
    rig.until(lambda reading: reading.nvml.up, 5)
    assert len(rig.driver.children) == 3


def test_lost_card_leaves_the_others_alone() -> None:
    """In the same tick the others are read; the lost one keeps its identity and has no values."""
    rig = Rig(cards=3)
    rig.tick()
    rig.driver.lost = {1: "GPU_IS_LOST"}
    with capture_logs() as logs:
        reading = rig.ticks(5)
        assert [card.lost for card in reading.cards] == ["", "GPU_IS_LOST", ""]
        assert (dict(reading.cards[1].values), reading.cards[1].processes) == ({}, None)
        assert reading.cards[1].identity.uuid == "GPU-1"
        assert all("utilization_ratio" in reading.cards[index].values for index in (0, 2))
        rig.driver.lost = {}
        assert rig.tick().cards[1].lost == ""
    assert [(line["event"], line["uuid"]) for line in logs] == [("gpu_lost", "GPU-1"), ("gpu_back", "GPU-1")]
    assert rig.driver.alive == len(rig.driver.children) == 1


def test_card_that_cannot_be_opened_is_lost_and_tried_again() -> None:
    """The others are served at once; the card comes when it can be opened."""
    rig = Rig(cards=2)
    rig.driver.unopenable = {0: "GPU_IS_LOST"}
    reading = rig.tick()
    assert [card.lost for card in reading.cards] == ["GPU_IS_LOST", ""]
    assert reading.cards[0].hung_s == 0
    rig.driver.unopenable = {}
    assert rig.until(lambda reading: bool(reading.cards[0].values), 65) >= 59


@pytest.mark.parametrize(
    "noise",
    [b"Segmentation fault\n", b'{"event":"values"', b"\xff\xfe\n", b"x" * (1 << 21), b'{"event":"values","id":1}\n'],
    ids=["garbage", "half a line", "not UTF-8", "giant", "incomplete"],
)
def test_unreadable_answer_replaces_the_reader(noise: bytes) -> None:
    """Whatever stands on the pipe, the reader is replaced, it is counted, and values come back."""
    rig = Rig(cards=1)
    rig.ticks(70)
    rig.driver.noise = [noise]
    reading = rig.ticks(4)
    assert reading.nvml.restarts == 1
    assert "utilization_ratio" in reading.cards[0].values
    assert rig.driver.alive == 1


def test_reader_that_only_talks_nonsense_is_restarted_with_back_off() -> None:
    """A reader that never gives a good answer does not cost a process a tick."""
    rig = Rig(cards=1)
    rig.driver.noise = [b"nonsense\n"] * 100
    reading = rig.ticks(60)
    assert len(rig.driver.children) <= 5
    assert (reading.nvml.up, reading.nvml.error) == (False, "BAD_ANSWER")


def test_card_that_crashes_the_library_is_left_out() -> None:
    """SIGSEGV while a card was read: the replacement leaves it out, the others are back."""
    rig = Rig(cards=2)
    rig.tick()
    rig.driver.crashing = {0}
    reading = rig.ticks(3)
    assert [card.lost for card in reading.cards] == ["CRASHED", ""]
    assert reading.cards[0].hung_s == 0
    assert "utilization_ratio" in reading.cards[1].values
    assert reading.health.errors["crashed"] == 1


def test_reader_killed_from_outside_blames_no_card() -> None:
    """A kill by an operator or the kernel says nothing about the card that was being read."""
    rig = Rig(cards=1)
    rig.ticks(70)
    rig.driver.hung = {0}
    rig.tick()
    rig.driver.hung = set()
    rig.driver.children[0].die("signal 9")
    reading = rig.ticks(2)
    assert (reading.cards[0].lost, reading.nvml.restarts) == ("", 1)
    assert "utilization_ratio" in reading.cards[0].values


def test_access_lost_takes_nvml_down_and_tries_a_new_process() -> None:
    """When not one call about any card succeeds, that is the driver's failure, not the cards'."""
    rig = Rig(cards=2)
    rig.ticks(5)
    rig.driver.refused = "UNKNOWN"
    reading = rig.ticks(5)
    assert (reading.nvml.up, reading.nvml.error, reading.cards) == (False, "UNKNOWN", ())
    rig.driver.refused = ""
    rig.until(lambda reading: reading.nvml.up and len(reading.cards) == 2, 60)
    assert len(rig.driver.children) > 1


def test_process_that_cannot_be_started_is_a_reason_of_its_own() -> None:
    """A machine out of processes is named as such, and tried again."""
    clock = FakeClock()
    driver = FakeDriver(clock)
    full = True

    def spawn() -> object:
        if full:
            raise OSError(11, "Resource temporarily unavailable")
        return driver.spawn()

    client = ReaderClient(NvmlSettings(), clock, spawn)  # type: ignore[arg-type]
    client.begin_tick()
    reading = client.end_tick(clock.monotonic_s())
    assert (reading.nvml.error, reading.health.errors["cannot_start"]) == ("CANNOT_START", 1)
    full = False
    clock.advance(5)
    client.begin_tick()
    assert client.end_tick(clock.monotonic_s() + 0.5).nvml.up


def test_values_of_a_silent_reader_vanish_after_three_seconds() -> None:
    """Two ticks without an answer are bridged; then the driver counts as down and nothing is served."""
    rig = Rig(cards=1, settings=NvmlSettings(read_deadline_s=100))
    rig.tick()
    rig.driver.hung = {0}
    assert "utilization_ratio" in rig.ticks(2).cards[0].values
    reading = rig.ticks(2)
    assert (reading.cards, reading.nvml.up, reading.nvml.error) == ((), False, "HUNG")


def test_out_of_range_values_are_dropped_and_counted() -> None:
    """Garbage from the driver is no reading."""
    rig = Rig(cards=1)
    rig.driver.fast = {"temperature_celsius": 644245923, "utilization_ratio": 4294967295, "power_watts": None}
    reading = rig.ticks(2)
    assert keys(reading.cards[0]) == {"energy_joules_total"}
    assert reading.nvml.dropped == {"temperature_celsius": 2, "utilization_ratio": 2, "power_watts": 2}


def test_xid_events_are_counted_over_readers() -> None:
    """The count only rises, also across a replaced reader, and keeps the last code and time."""
    rig = Rig(cards=1)
    assert rig.tick().cards[0].values["xid_events_total"] == 0
    rig.driver.xids = {0: (31, 79)}
    rig.tick()
    rig.driver.crashing = {0}
    rig.tick()
    rig.driver.crashing = set()
    rig.until(lambda reading: bool(reading.cards[0].values), 70)
    values = rig.tick().cards[0].values
    assert (values["xid_events_total"], values["xid_last_code"]) == (2, 79)
    assert values["xid_last_timestamp_seconds"] == pytest.approx(1_700_000_001, abs=1)


def test_paused_card_is_let_go() -> None:
    """The reader that runs on does not hold the card; its identity stays, without values."""
    rig = Rig(cards=2)
    rig.tick()
    rig.client.pause({"GPU-1"})
    reading = rig.tick()
    assert rig.driver.children[-1].held == {0}
    assert (rig.driver.alive, reading.nvml.up, reading.nvml.restarts) == (1, True, 0)
    assert (reading.cards[1].identity.uuid, dict(reading.cards[1].values), reading.cards[1].lost) == ("GPU-1", {}, "")
    rig.client.resume({"GPU-1"})
    assert "utilization_ratio" in rig.ticks(2).cards[1].values


def test_pausing_every_card_lets_go_of_the_driver() -> None:
    """No child is left, however long it lasts, and health says why."""
    rig = Rig(cards=2)
    rig.tick()
    rig.client.pause({"GPU-0", "GPU-1"})
    assert rig.driver.alive == 0
    reading = rig.ticks(100)
    assert (rig.driver.alive, reading.nvml.up, reading.nvml.error) == (0, False, "PAUSED")
    assert [card.identity.uuid for card in reading.cards] == ["GPU-0", "GPU-1"]
    rig.client.resume({"GPU-0", "GPU-1"})
    assert rig.ticks(2).nvml.up


def test_disabled_reads_nothing() -> None:
    """With nvml.enabled false no child is ever started."""
    rig = Rig(settings=NvmlSettings(enabled=False))
    reading = rig.ticks(3)
    assert (rig.driver.children, reading.nvml.error, reading.cards) == ([], "DISABLED", ())


def test_burst_reads_one_card_now() -> None:
    """Fast values of one card, fresh, without disturbing the tick."""
    rig = Rig(cards=2)
    rig.tick()
    rig.driver.fast["temperature_celsius"] = 80
    card = rig.client.burst("GPU-1", 0.1)
    assert card is not None
    assert card.values["temperature_celsius"] == 80
    assert "utilization_ratio" in rig.tick().cards[0].values


@pytest.mark.parametrize("uuid", ["GPU-9", "GPU-0"], ids=["unknown card", "hung card"])
def test_burst_gives_up_in_time(uuid: str) -> None:
    """No card, or no answer: None within the limit, and no second ask on top of an unanswered one."""
    rig = Rig(cards=1)
    rig.tick()
    rig.driver.hung = {0}
    start_s = rig.clock.monotonic_s()
    assert rig.client.burst(uuid, 10.0) is None
    assert rig.clock.monotonic_s() - start_s <= 0.25
    asked = len(rig.driver.children[0].commands)
    assert rig.client.burst(uuid, 10.0) is None
    assert len(rig.driver.children[0].commands) == asked


def test_hang_in_a_burst_is_found_by_the_tick() -> None:
    """A card that hangs under a burst is left out like any other."""
    rig = Rig(cards=2)
    rig.tick()
    rig.driver.hung = {1}
    rig.client.burst("GPU-1", 0.1)
    assert rig.ticks(4).cards[1].lost == "HUNG"


def test_bursts_and_ticks_share_the_reader() -> None:
    """Two threads asking at once get their own answers, and nothing is replaced."""
    rig = Rig(cards=2)
    rig.tick()
    answers: list[Card | None] = []
    thread = threading.Thread(target=lambda: answers.extend(rig.client.burst("GPU-0", 0.2) for _ in range(200)))
    thread.start()
    readings = []
    for _ in range(200):
        rig.client.begin_tick()
        readings.append(rig.client.end_tick(rig.clock.monotonic_s()))
    thread.join()
    assert all(answer is not None for answer in answers)
    assert all(reading.nvml.up for reading in readings)
    assert len(rig.driver.children) == 1


def test_agent_that_was_stopped_does_not_blame_the_reader() -> None:
    """After SIGSTOP and SIGCONT the silence was the agent's own."""
    rig = Rig(cards=1)
    rig.tick()
    rig.client.begin_tick()
    rig.clock.advance(30)
    reading = rig.client.end_tick(rig.clock.monotonic_s() + 0.5)
    assert (reading.nvml.restarts, reading.cards[0].lost) == (0, "")


def test_close_ends_the_child() -> None:
    """Nothing is left behind, and no child is started again."""
    rig = Rig()
    rig.tick()
    rig.client.close(1.0)
    rig.ticks(3)
    assert rig.driver.alive == 0
    assert all(child.closed for child in rig.driver.children)


def test_close_is_bounded_where_the_child_cannot_be_killed() -> None:
    """An unkillable child does not keep the agent from stopping."""
    rig = Rig(cards=1)
    rig.tick()
    rig.driver.hung, rig.driver.unkillable = {0}, True
    rig.client.begin_tick()
    start_s = rig.clock.monotonic_s()
    rig.client.close(1.0)
    assert rig.clock.monotonic_s() - start_s <= 1.2


def test_series_count_is_constant_over_restarts() -> None:
    """Card numbers that go and come leave nothing behind."""
    rig = Rig(cards=4)
    rig.tick()
    rig.driver.cards = 2
    rig.client.resume(())
    assert len(rig.ticks(2).cards) == 2
