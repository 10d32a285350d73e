"""What the status page says about each kind of node."""

import msgspec
import pytest

from agent.model.probe import PROBE_KINDS
from agent.model.snapshot import NvmlHealth, Snapshot
from agent.model.throttle import THROTTLE_REASONS
from agent.model.verdict import NodeVerdict
from agent.model.vocabulary import CARD_STATES, NODE_STATES, WORKLOAD_STATES
from exporters.board import Board
from exporters.view import CardView, PageView, ProbeRow, Tile, page_view
from exporters.words import (
    CARD_WORDS,
    NODE_WORDS,
    NOT_JUDGED,
    PROBE_WORDS,
    REASON_WORDS,
    TONES,
    WORKLOAD_WORDS,
    WORST_FIRST,
)
from tests.support import snapshots


def view_of(snapshot: Snapshot, *, fresh: bool = True) -> PageView:
    """Return the page's view of a snapshot whose host counters ran for 10 s."""
    board = Board()
    board.publish(snapshot)
    later = {"taken_monotonic_s": snapshot.taken_monotonic_s + 10.0}
    if snapshot.host:
        later["host"] = snapshots.host_samples(10.0)  # type: ignore[assignment]
    last = msgspec.structs.replace(snapshot, **later)
    board.publish(last)
    return page_view(last, board.host_rates(), version="1.2.3", fresh=fresh)


def card_of(view: PageView, title: str) -> CardView:
    """Return the card of that title."""
    return next(card for card in view.cards if card.title == title)


def tile_of(tiles: tuple[Tile, ...], label: str) -> Tile:
    """Return the tile of that label."""
    return next(tile for tile in tiles if tile.label == label)


def test_the_worst_card_comes_first_and_makes_the_headline() -> None:
    """Whoever opens the page reads first what is worst, and how much more there is."""
    view = view_of(snapshots.mixed_node())
    assert [card.title for card in view.cards[:4]] == ["GPU 6", "GPU 5", "GPU 2", "GPU 4"]
    assert view.verdict == "GPU 6 lost, 2 more to look at"
    assert view.tone == "bad"
    assert [(count.number, count.word) for count in view.counts] == [
        (1, "Lost"),
        (1, "Degraded"),
        (1, "Throttled"),
        (5, "OK"),
    ]


def test_a_card_says_its_state_its_reason_since_when_and_what_to_do() -> None:
    """All that somebody needs to act stands on the card."""
    card = card_of(view_of(snapshots.mixed_node()), "GPU 5")
    assert (card.word, card.tone, card.since) == ("Degraded", "bad", "for 2 h")
    assert card.summary.startswith("8.4 % below its own reference")
    assert card.next_action.startswith("Drain the card")
    assert card.place == f"0000:6b:00.0 · S/N 1652024000005 · {snapshots.uuid_of(5)}"


def test_a_starved_card_is_ok_and_says_why_it_is_slow() -> None:
    """The workload's state is beside the card's, never instead of it."""
    card = card_of(view_of(snapshots.mixed_node()), "GPU 4")
    assert (card.word, card.workload) == ("OK", "Input-bound")
    assert card.further == (f"{snapshots.INPUT_BOUND.summary} {snapshots.INPUT_BOUND.next_action}",)


def test_shadow_findings_are_not_shown() -> None:
    """A rule on trial says nothing to people."""
    shadow = msgspec.structs.replace(snapshots.DEGRADED, shadow=True)
    node = snapshots.snapshot((snapshots.card(0),), (snapshots.verdict(0, "ok", "ok", shadow),))
    (card,) = view_of(node).cards
    assert (card.summary, card.further) == ("", ())


def test_key_readings_are_told_beside_their_limits() -> None:
    """Each number has what it is compared with."""
    tiles = card_of(view_of(snapshots.mixed_node()), "GPU 2").tiles
    assert [tile.label for tile in tiles] == ["Utilisation", "Temp", "Power", "SM clock", "Memory"]
    assert tile_of(tiles, "Temp") == Tile("Temp", "88", "°C", "slows at 89", 88 / 89, "warn")
    assert tile_of(tiles, "Power") == Tile("Power", "402", "", "of 700 W", 402 / 700)
    assert tile_of(tiles, "Memory").detail == "of 140 GiB"


def test_readings_without_limits_stand_alone_and_missing_ones_are_missing() -> None:
    """A card that offers little shows little."""
    values = {"power_watts": 80.0, "memory_used_bytes": 2.0**30, "temperature_celsius": 50.0}
    (card,) = view_of(snapshots.snapshot((snapshots.card(0, values),))).cards
    assert [(tile.label, tile.value, tile.unit, tile.detail, tile.share) for tile in card.tiles] == [
        ("Temp", "50", "°C", "", None),
        ("Power", "80", "W", "", None),
        ("Memory", "1.00", "GiB", "", None),
    ]


def test_reasons_that_hold_the_clocks_are_told_apart() -> None:
    """Idle is benign, heat is not."""
    view = view_of(snapshots.mixed_node())
    hot = [(reason.word, reason.limiting) for reason in card_of(view, "GPU 2").reasons]
    assert hot == [("hardware slowdown", True), ("heat (hardware)", True)]
    assert [(reason.word, reason.limiting) for reason in card_of(view, "GPU 5").reasons] == [("idle", False)]


def test_an_unjudged_card_says_so() -> None:
    """Before the first verdict nothing is claimed."""
    view = view_of(snapshots.snapshot((snapshots.card(0),)))
    assert (view.cards[0].word, view.cards[0].tone, view.cards[0].since) == ("Not judged yet", "quiet", "")
    assert view.verdict == "GPU 0 not judged yet"


@pytest.mark.parametrize(("count", "headline"), [(1, "Card OK"), (2, "All cards OK")])
def test_when_all_is_well_the_headline_says_so(count: int, headline: str) -> None:
    """One card and several."""
    cards = tuple(snapshots.card(index) for index in range(count))
    verdicts = tuple(snapshots.verdict(index) for index in range(count))
    assert view_of(snapshots.snapshot(cards, verdicts)).verdict == headline


def test_probes_are_told_in_readable_units_with_their_age() -> None:
    """The last value, what was measured, when, and how it went before."""
    first, second = view_of(snapshots.idle_node()).cards[0].probes
    assert (first.name, first.detail) == ("Matrix product", "bf16 · 8192\u00d78192\u00d78192")
    assert (first.value, first.unit, first.age) == ("659", "TFLOP/s", "14 min ago")
    assert (second.value, second.unit) == ("2,051", "images/s")
    assert len(first.spark) == 20


def test_a_probe_without_a_value_says_why() -> None:
    """Skipped is quiet, an error is not; a value after the reason stays."""
    record = snapshots.probe_record
    skipped = record(0, "matmul", None, "flop/s", status="skipped", reason="foreign_process")
    failed = record(0, "resnet50", None, "images/s", status="error", reason="missing_library:libcusolver.so.11")
    bare = record(0, "vgg16", None, "images/s", status="timeout")
    rows = view_of(snapshots.snapshot((snapshots.card(0),), (), (skipped, failed, bare))).cards[0].probes
    assert [(row.note, row.tone) for row in rows] == [
        ("skipped: a process that is not ours uses the card", "quiet"),
        ("error: a library TensorFlow needs fails to load: libcusolver.so.11", "bad"),
        ("timeout", "bad"),
    ]


def test_every_word_of_the_vocabularies_has_words_for_people() -> None:
    """A state or reason that is added to the model is not shown in its code form."""
    assert set(CARD_STATES) | {NOT_JUDGED} == set(CARD_WORDS) == set(TONES) == set(WORST_FIRST)
    assert set(NODE_STATES) - {"ok"} == set(NODE_WORDS)
    assert set(WORKLOAD_STATES) - {"ok", "none"} == set(WORKLOAD_WORDS)
    assert set(THROTTLE_REASONS) == set(REASON_WORDS)
    assert set(PROBE_KINDS) == set(PROBE_WORDS)


def test_small_noise_stays_flat_and_a_fall_is_seen() -> None:
    """The line's scale does not blow up noise; one value makes no line."""
    view = view_of(snapshots.mixed_node())

    def height(row: ProbeRow) -> float:
        return max(y for _, y in row.spark) - min(y for _, y in row.spark)

    assert height(card_of(view, "GPU 0").probes[0]) < 4
    assert height(card_of(view, "GPU 5").probes[0]) == pytest.approx(20, abs=0.1)
    usual = snapshots.idle_node()
    once = msgspec.structs.replace(usual, probe_history=dict.fromkeys(usual.probe_history, (1.0,)))
    assert view_of(once).cards[0].probes[0].spark == ()
    zero = msgspec.structs.replace(usual, probe_history=dict.fromkeys(usual.probe_history, (0.0, 0.0)))
    assert {y for _, y in view_of(zero).cards[0].probes[0].spark} == {12.0}


def test_the_host_stands_beside_the_cards() -> None:
    """Rates come from counters, shares from what there is."""
    host = view_of(snapshots.idle_node()).host
    shown = {tile.label: f"{tile.value} {tile.unit} {tile.detail}".strip() for tile in host}
    assert shown == {
        "CPU": "19 % of 16 CPUs",
        "Load": "3.40  1 min",
        "Memory": "47.7  of 252 GiB",
        "CPU pressure": "0.4 %",
        "I/O pressure": "2.1 %",
        "Memory pressure": "0.0 %",
        "Disk read": "412 MB/s",
        "Disk write": "12.1 MB/s",
        "Network in": "1.21 GB/s",
        "Network out": "980 MB/s",
    }


def test_a_host_that_was_not_read_is_not_shown() -> None:
    """No collector, no tile."""
    assert view_of(msgspec.structs.replace(snapshots.idle_node(), host=())).host == ()


def test_a_driver_that_is_down_is_above_everything() -> None:
    """The banner names the error, the likely cause and the next action."""
    view = view_of(snapshots.driver_down_node())
    (banner,) = view.banners
    assert (banner.word, banner.tone, banner.since) == ("NVIDIA driver down", "bad", "for 95 s")
    assert banner.code == "NVML_ERROR_LIB_RM_VERSION_MISMATCH"
    assert banner.lines[-1].startswith("The driver was upgraded while it was loaded")
    assert banner.next_action.startswith("Drain the node")
    assert (view.verdict, view.tone, view.no_cards) == ("NVIDIA driver down", "bad", "")


def test_a_broken_probe_environment_is_a_warning_without_the_drivers_words() -> None:
    """No card is blamed for what TensorFlow lacks."""
    node = NodeVerdict("probe_environment_broken", snapshots.TAKEN_WALL_S - 10)
    view = view_of(snapshots.snapshot((snapshots.card(0),), (snapshots.verdict(0),), node=node))
    (banner,) = view.banners
    assert (banner.word, banner.tone, banner.code, banner.next_action) == ("Probe environment broken", "warn", "", "")


@pytest.mark.parametrize(
    ("nvml", "text"),
    [
        (NvmlHealth(error="NVML_ERROR_X"), "NVML_ERROR_X"),
        (NvmlHealth(error="NVML_ERROR_X", advice="Install a driver."), "Install a driver."),
        (NvmlHealth(up=True), "No NVIDIA card is in this machine."),
        (NvmlHealth(), "The NVIDIA driver was not asked yet."),
    ],
)
def test_a_node_without_cards_is_a_normal_node(nvml: NvmlHealth, text: str) -> None:
    """It says in one line why there is none, and shows what it probed instead."""
    view = view_of(snapshots.snapshot(nvml=nvml, probes=snapshots.cpu_only_node().probes))
    assert (view.verdict, view.tone, view.no_cards) == ("No NVIDIA card", "quiet", text)
    assert [row.name for row in view.cpu_probes] == ["Matrix product", "ResNet-50 step"]


def test_what_the_agent_itself_suffers_from_is_told() -> None:
    """Failing collectors, hanging calls and stuck readers are named."""
    nvml = NvmlHealth(up=True, hung_s=42.0, stuck_readers=1)
    view = view_of(snapshots.snapshot(nvml=nvml, failing=("disk",)))
    assert view.trouble == (
        "collector disk fails, last well 12 min ago",
        "a driver call has not returned for 42 s",
        "1 reader children cannot be ended",
    )
    assert tile_of(view.agent, "Ticks") == Tile("Ticks", "4,210", "", "1 late")
    never = msgspec.structs.replace(snapshots.health("cpu")[0], last_success_wall_s=None)
    assert view_of(msgspec.structs.replace(snapshots.idle_node(), health=(never,))).trouble == ("collector cpu fails",)


def test_an_agent_that_stands_still_shows_no_readings() -> None:
    """What was last seen may be wrong by now: it is told in the past tense, without numbers."""
    view = view_of(snapshots.mixed_node(), fresh=False)
    assert view.banners[0].word == "The agent stands still"
    assert view.verdict == "The agent stands still"
    assert not any(card.tiles or card.reasons or card.workload for card in view.cards)
    assert {card.tone for card in view.cards} == {"quiet"}
    assert view.cards[0].word == "Was Lost"
    assert (view.host, view.counts) == ((), ())
