"""Under any mixture of troubles the client keeps its promises, and recovers when they end."""

import random
from collections.abc import Callable

import pytest

from agent.config.settings import NvmlSettings
from agent.model.vocabulary import TIER_PERIOD_S
from agent.nvml.absence import LONGEST_RETRY_S
from agent.nvml.client import ReaderClient
from agent.nvml.health import REASONS
from agent.nvml.source import GpuReading
from tests.support.clock import FakeClock
from tests.support.fakereader import FakeDriver, uuid_of

CARDS = 4
TICKS = 1500


class Storm:
    """A client, its driver, and dice that decide what happens next."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.clock = FakeClock()
        self.driver = FakeDriver(self.clock, CARDS)
        self.client = ReaderClient(NvmlSettings(), self.clock, self.driver.spawn)

    def release(self) -> None:
        """Let the driver go of every child that hangs in it."""
        for child in self.driver.children:
            if child.silent:
                child.die("signal 9")

    def weather(self) -> None:
        """Let one thing begin or end, mostly nothing."""
        driver, card = self.driver, self.dice.randrange(CARDS)
        happenings: list[Callable[[], object]] = [
            lambda: driver.hung.symmetric_difference_update({card}),
            lambda: driver.crashing.symmetric_difference_update({card}),
            lambda: driver.lost.pop(card, None) or driver.lost.update({card: "GPU_IS_LOST"}),
            lambda: driver.unopenable.pop(card, None) or driver.unopenable.update({card: "UNKNOWN"}),
            lambda: setattr(driver, "init_error", self.dice.choice(["", "UNKNOWN"])),
            lambda: setattr(driver, "hang_in_init", self.dice.random() < 0.2),
            lambda: setattr(driver, "unkillable", self.dice.random() < 0.3),
            lambda: setattr(driver, "refused", self.dice.choice(["", "", "UNKNOWN"])),
            lambda: setattr(driver, "cards", self.dice.choice([0, 2, CARDS, CARDS])),
            lambda: driver.noise.append(b"nonsense\n"),
            lambda: driver.xids.update({card: (79,)}),
            lambda: self.client.pause({uuid_of(card)}),
            lambda: self.client.resume({uuid_of(card)}),
            lambda: self.client.burst(uuid_of(card), 0.1),
            lambda: self.clock.advance(self.dice.choice([0.1, 5, 40])),
            self.release,
        ]
        if self.dice.random() < 0.3:
            self.dice.choice(happenings)()

    def calm(self) -> None:
        """End all trouble."""
        driver = self.driver
        driver.hung, driver.crashing, driver.noise = set(), set(), []
        driver.lost, driver.unopenable, driver.cards = {}, {}, CARDS
        driver.init_error = driver.refused = ""
        driver.hang_in_init = driver.unkillable = False
        self.release()
        self.client.resume({uuid_of(index) for index in range(CARDS)})

    def tick(self) -> GpuReading:
        """Run one tick and check what always holds."""
        start_s = self.clock.monotonic_s()
        self.client.begin_tick()
        began_s = self.clock.monotonic_s()
        reading = self.client.end_tick(began_s + 0.5)
        assert began_s - start_s <= 0.25, "begin_tick waited"
        assert self.clock.monotonic_s() - began_s <= 0.75, "end_tick waited beyond its limit"
        assert self.driver.alive <= 3, "children are multiplied"
        assert reading.nvml.stuck_readers <= 2
        assert reading.nvml.up == (not reading.nvml.error)
        assert bool(reading.nvml.error) == bool(reading.nvml.advice)
        for card in reading.cards:
            assert not (card.lost and card.values), "a lost card has no values"
            assert card.hung_s == 0 or card.lost == "HUNG"
        assert set(reading.health.errors) == set(REASONS)
        self.clock.advance(max(0.0, start_s + TIER_PERIOD_S["fast"] - self.clock.monotonic_s()))
        return reading


@pytest.mark.parametrize("seed", range(6))
def test_promises_hold_in_a_storm_and_all_is_well_after_it(seed: int) -> None:
    """No exception, no wait beyond its limit, no multiplied child; every card is back in the end."""
    storm = Storm(seed)
    xids = 0.0
    for _ in range(TICKS):
        storm.weather()
        reading = storm.tick()
        seen = sum(card.values.get("xid_events_total", 0) for card in reading.cards if card.values)
        xids = max(xids, seen)
    storm.calm()
    for _ in range(int(LONGEST_RETRY_S) + 70):
        reading = storm.tick()
    assert reading.nvml.up
    assert [card.identity.uuid for card in reading.cards] == [uuid_of(index) for index in range(CARDS)]
    assert all("utilization_ratio" in card.values and not card.lost for card in reading.cards)
    assert (storm.driver.alive, reading.nvml.stuck_readers, reading.nvml.hung_s) == (1, 0, 0)
    assert sum(card.values["xid_events_total"] for card in reading.cards) >= xids
