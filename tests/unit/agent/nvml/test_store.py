"""The store gives each value its unit and its age, and believes only what can be."""

import pytest

from agent.model.quantities import QUANTITIES
from agent.model.quantity import Quantity
from agent.model.vocabulary import TIER_PERIOD_S, Tier
from agent.nvml.protocol import CardFound, Hello, Values
from agent.nvml.store import CardStore, believable

HELLO = Hello(count=2, driver="580.1")
OF_TIER: dict[Tier, str] = {
    "fast": "temperature_celsius",
    "samples": "power_peak_watts",
    "slow": "pcie_width_lanes",
    "static": "power_limit_max_watts",
}


def store_with(*uuids: str, off: tuple[str, ...] = ()) -> CardStore:
    """Return a store that found these cards."""
    store = CardStore(off)
    store.begin(HELLO, ())
    for index, uuid in enumerate(uuids):
        store.found(CardFound(card=index, uuid=uuid, events=True))
    store.settle()
    return store


def answer(index: int, values: dict[str, float | None], *tiers: Tier) -> Values:
    """Return a card's answer."""
    return Values(id=1, card=index, tiers=tiers or ("fast",), values=values, succeeded=1)


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        ("power_watts", 82225, 82.225),
        ("utilization_ratio", 7, 0.07),
        ("clock_sm_hertz", 1980, 1.98e9),
        ("energy_joules_total", 2432192, 2432.192),
        ("throttle_seconds_sw_power_cap", 1_500_000_000, 1.5),
        ("nvlink_transmit_bytes_total", 3, 3072),
    ],
)
def test_drivers_number_gets_its_unit(key: str, raw: float, value: float) -> None:
    """Milliwatts, per cent, MHz, mJ, ns and KiB become base units without rounding dust."""
    assert believable({key: raw}) == ({key: value}, [])


@pytest.mark.parametrize("raw", [644245923, -1, None, float("nan"), float("inf")])
def test_what_nobody_can_believe_is_dropped(raw: float | None) -> None:
    """Out of range, missing and not a number alike."""
    assert believable({"temperature_celsius": raw}) == ({}, ["temperature_celsius"])


def test_used_memory_above_the_total_is_dropped() -> None:
    """One row may bound another."""
    values, dropped = believable({"memory_total_bytes": 100, "memory_used_bytes": 101, "memory_free_bytes": 100})
    assert (set(values), dropped) == ({"memory_total_bytes", "memory_free_bytes"}, ["memory_used_bytes"])


def test_unknown_keys_are_passed_over() -> None:
    """A reader of another version may know more rows."""
    assert believable({"not_a_row": 1}) == ({}, [])


@pytest.mark.parametrize("row", QUANTITIES, ids=lambda row: row.key)
def test_every_row_drops_all_ones(row: Quantity) -> None:
    """No row serves the driver's usual garbage: all ones, in 64 bits."""
    assert believable({row.key: 2**64 - 1}) == ({}, [row.key])


@pytest.mark.parametrize("tier", ["fast", "samples", "slow", "static"])
def test_values_live_for_three_periods_of_their_tier(tier: Tier) -> None:
    """Nothing older is served; the identity stays."""
    store = store_with("GPU-a")
    key = OF_TIER[tier]
    store.answered(answer(0, {key: 8}, tier), 100.0, 0.0)
    last_s = 100.0 + 3 * TIER_PERIOD_S[tier]
    assert key in store.card(0, last_s).values
    card = store.card(0, last_s + 0.001)
    assert (key in card.values, card.identity.uuid) == (False, "GPU-a")


def test_value_that_is_no_longer_answered_vanishes_at_once() -> None:
    """An answer replaces its tiers as a whole."""
    store = store_with("GPU-a")
    store.answered(answer(0, {"temperature_celsius": 50, "pstate": 0}), 100.0, 0.0)
    store.answered(answer(0, {"pstate": 0}), 101.0, 0.0)
    assert "temperature_celsius" not in store.card(0, 101.0).values


def test_answer_without_one_successful_call_keeps_what_is_fresh() -> None:
    """A sweep that failed as a whole says nothing about the card; its values age."""
    store = store_with("GPU-a")
    store.answered(answer(0, {"pstate": 0}), 100.0, 0.0)
    store.answered(Values(id=2, card=0, tiers=("fast",), refused="UNKNOWN"), 101.0, 0.0)
    assert store.card(0, 102.0).values["pstate"] == 0
    assert "pstate" not in store.card(0, 104.0).values


def test_card_keeps_its_values_and_counters_over_a_new_reader() -> None:
    """Found again under the same UUID it is the same card."""
    store = store_with("GPU-a", "GPU-b")
    store.answered(Values(id=1, card=0, tiers=("fast",), values={"pstate": 0}, xids=(79,), succeeded=1), 100.0, 5.0)
    store.begin(HELLO, ())
    store.found(CardFound(card=0, uuid="GPU-a", events=True))
    store.found(CardFound(card=1, uuid="GPU-b", events=True))
    store.settle()
    values = store.card(0, 101.0).values
    assert (values["pstate"], values["xid_events_total"]) == (0, 1)


def test_swapped_cards_do_not_inherit() -> None:
    """After a renumbering a card has its own counters and not the values of its index."""
    store = store_with("GPU-a", "GPU-b")
    store.answered(Values(id=1, card=0, tiers=("fast",), values={"pstate": 0}, xids=(79,), succeeded=1), 100.0, 5.0)
    store.begin(HELLO, ())
    store.found(CardFound(card=0, uuid="GPU-b", events=True))
    store.found(CardFound(card=1, uuid="GPU-a", events=True))
    store.settle()
    assert dict(store.card(0, 101.0).values) == {}
    store.answered(answer(0, {"pstate": 0}), 101.0, 6.0)
    store.answered(answer(1, {"pstate": 0}), 101.0, 6.0)
    assert [card.values["xid_events_total"] for card in store.cards(101.0, {})] == [0, 1]


def test_card_that_is_not_found_again_is_gone() -> None:
    """Cards of an earlier session stay only while they are left out on purpose."""
    store = store_with("GPU-a", "GPU-b", "GPU-c")
    store.begin(HELLO, {2})
    assert len(store.cards(0.0, {})) == 3, "during the search nothing flickers"
    store.found(CardFound(card=0, uuid="GPU-a"))
    store.settle()
    assert [card.identity.uuid for card in store.cards(0.0, {})] == ["GPU-a", "GPU-c"]


def test_switched_off_derived_rows_are_not_served() -> None:
    """nvml.off holds for what the agent works out, too."""
    store = store_with("GPU-a", off=("xid_events_total",))
    store.answered(answer(0, {"pstate": 0}), 100.0, 0.0)
    assert "xid_events_total" not in store.card(0, 100.0).values


def test_answer_about_an_unknown_card_is_passed_over() -> None:
    """A late line about a card of another session does no harm."""
    store = store_with("GPU-a")
    store.answered(answer(5, {"pstate": 0}), 100.0, 0.0)
    assert len(store.cards(100.0, {})) == 1
