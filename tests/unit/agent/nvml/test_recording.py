"""What is recorded plays back as the same cards."""

import json
import threading
from pathlib import Path

import pytest

from agent.config.settings import NvmlSettings
from agent.nvml.recording import Recorder, RecordingError, ReplaySource, discard_without_card, record
from tests.support.clock import FakeClock
from tests.support.fakereader import FakeDriver

HEADER = '{"heatsoak_recording":1,"wall_s":0,"masked":true}\n'


def recorded(tmp_path: Path, *, mask: bool = True, seconds: float = 30) -> Path:
    """Return a recording of two cards, one of them lost after a while."""
    clock = FakeClock()
    driver = FakeDriver(clock)
    path = tmp_path / f"cards-{len(list(tmp_path.iterdir()))}.jsonl"
    record(path, NvmlSettings(), clock, threading.Event(), seconds, mask=mask, spawn=driver.spawn)
    return path


def test_identifiers_are_masked(tmp_path: Path) -> None:
    """A file made for a bug report holds no UUID of a real card, unless it was asked for."""
    assert "GPU-00000000-0000-4000-8000-000000000002" in recorded(tmp_path).read_text()
    assert '"GPU-1"' not in recorded(tmp_path).read_text()
    assert '"GPU-1"' in recorded(tmp_path, mask=False).read_text()


def test_a_recording_is_never_overwritten(tmp_path: Path) -> None:
    """It may be the only one of what went wrong."""
    path = recorded(tmp_path)
    before = path.read_bytes()
    with pytest.raises(RecordingError, match="is there already"):
        record(path, NvmlSettings(), FakeClock(), threading.Event(), 1.0)
    assert path.read_bytes() == before


def test_playing_gives_the_same_values(tmp_path: Path) -> None:
    """Identity, values and processes come out as a live reader would have given them."""
    clock = FakeClock()
    source = ReplaySource(recorded(tmp_path), clock)
    clock.advance(5)
    reading = source.end_tick(clock.monotonic_s())
    assert [card.identity.uuid[-1] for card in reading.cards] == ["1", "2"]
    assert reading.cards[0].values["power_watts"] == 300
    assert reading.cards[0].values["energy_joules_total"] == 5
    assert (reading.nvml.up, reading.nvml.driver, reading.health.ok) == (True, "580.1", True)
    burst = source.burst(reading.cards[1].identity.uuid, 0.1)
    assert burst is not None
    assert burst.values["temperature_celsius"] == 60


@pytest.mark.parametrize("speed", [0.1, 1.0, 20.0])
def test_recording_begins_again_at_its_end(tmp_path: Path, speed: float) -> None:
    """A demo goes on for ever, at any speed, without a gap."""
    clock = FakeClock()
    source = ReplaySource(recorded(tmp_path, seconds=5), clock, speed)
    clock.advance(1 / speed)
    for _ in range(60):
        source.begin_tick()
        reading = source.end_tick(clock.monotonic_s())
        assert all("power_watts" in card.values for card in reading.cards)
        assert len(reading.cards) == 2
        clock.advance(1.0 / speed)


def test_paused_cards_have_no_values(tmp_path: Path) -> None:
    """An operator may try pause and resume on a recording."""
    clock = FakeClock()
    source = ReplaySource(recorded(tmp_path), clock)
    clock.advance(2)
    uuids = [card.identity.uuid for card in source.end_tick(0).cards]
    source.pause(uuids[:1])
    assert [bool(card.values) for card in source.end_tick(0).cards] == [False, True]
    source.pause(uuids)
    assert source.end_tick(0).nvml.error == "PAUSED"
    source.resume(uuids)
    assert all(card.values for card in source.end_tick(0).cards)


def test_failed_init_is_recorded(tmp_path: Path) -> None:
    """A bug report about a driver that does not start plays as one."""
    clock = FakeClock()
    driver = FakeDriver(clock)
    driver.init_error = "DRIVER_NOT_LOADED"
    path = tmp_path / "down.jsonl"
    record(path, NvmlSettings(), clock, threading.Event(), 3, spawn=driver.spawn)
    source = ReplaySource(path, clock)
    clock.advance(1)
    reading = source.end_tick(0)
    assert (reading.nvml.up, reading.nvml.error, reading.cards) == (False, "DRIVER_NOT_LOADED", ())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ":1: "),
        ("{}\n", ":1: "),
        ('{"heatsoak_recording":2,"wall_s":0,"masked":true}\n', ":1: format 2"),
        (HEADER, ": holds no message"),
        (HEADER + '{"t":0,"m":{"event":"nonsense"}}\n', ":2: "),
        (HEADER + '{"t":0,"m":', ":2: "),
    ],
)
def test_bad_file_is_named_with_its_line(tmp_path: Path, text: str, place: str) -> None:
    """The error says which line of which file, and what was expected."""
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(RecordingError, match="expected") as raised:
        ReplaySource(path, FakeClock())
    assert f"{path}{place}" in str(raised.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    """A path that cannot be read or written is our error."""
    with pytest.raises(RecordingError, match="cannot be read"):
        ReplaySource(tmp_path / "none", FakeClock())
    with pytest.raises(RecordingError, match="cannot be written"):
        record(tmp_path / "no" / "where", NvmlSettings(), FakeClock(), threading.Event(), 1)


def test_every_line_is_json_with_a_time(tmp_path: Path) -> None:
    """The format is what docs/recording.md says."""
    header, *lines = [json.loads(line) for line in recorded(tmp_path).read_text().splitlines()]
    assert header["heatsoak_recording"] == 1
    times = [line["t"] for line in lines]
    assert times == sorted(times)
    assert {line["m"]["event"] for line in lines} == {"hello", "at", "card", "ready", "values", "done"}


def test_stopping_early_keeps_what_came(tmp_path: Path) -> None:
    """A recording ends when it is told to."""
    clock = FakeClock()
    stop = threading.Event()
    stop.set()
    path = tmp_path / "short.jsonl"
    record(path, NvmlSettings(), clock, stop, 1000, spawn=FakeDriver(clock).spawn)
    assert len(path.read_text().splitlines()) > 3


def test_recorder_masks_lost_cards_too(tmp_path: Path) -> None:
    """A card that cannot be opened has no identifier to mask."""
    path = tmp_path / "lost.jsonl"
    with path.open("wb") as stream:
        Recorder(stream, FakeClock(), mask=True).tap(b'{"event":"card","card":0,"lost":"GPU_IS_LOST"}')
    assert "GPU-" not in path.read_text()


class _ImpatientClock(FakeClock):
    """A clock at which somebody presses Ctrl-C in the first second."""

    def wait(self, event: threading.Event, timeout_s: float) -> bool:
        """Do not wait to the end."""
        raise KeyboardInterrupt(event, timeout_s)


@pytest.mark.parametrize(("init_error", "kept"), [("DRIVER_NOT_LOADED", False), ("", True)])
def test_what_is_cut_short_before_a_card_answered_leaves_no_file(
    tmp_path: Path, init_error: str, *, kept: bool
) -> None:
    """The next try needs no other name."""
    clock = _ImpatientClock()
    driver = FakeDriver(clock)
    driver.init_error = init_error
    path = tmp_path / "cards.jsonl"
    with pytest.raises(KeyboardInterrupt):
        record(path, NvmlSettings(), clock, threading.Event(), 1000, spawn=driver.spawn)
    assert path.exists() == kept


def test_a_recording_without_a_card_is_discarded_and_one_with_a_card_kept(tmp_path: Path) -> None:
    """A last line that was cut off takes no card away."""
    empty, cut = tmp_path / "empty.jsonl", recorded(tmp_path)
    empty.write_text(HEADER + '{"t":0.1,"m":{"event":"failed","error":"DRIVER_NOT_LOADED"}}\n')
    with cut.open("a") as stream:
        stream.write('{"t":31')
    assert (discard_without_card(empty), discard_without_card(cut)) == (True, False)
    assert (empty.exists(), cut.exists()) == (False, True)


def test_readings_of_a_recording_name_it(tmp_path: Path) -> None:
    """Nobody takes them for those of this machine."""
    path = recorded(tmp_path)
    assert ReplaySource(path, FakeClock()).end_tick(0).nvml.recording == path.name
