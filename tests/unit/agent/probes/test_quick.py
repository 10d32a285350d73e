"""What a prolog or epilog gets: one exit code for a node, bad before unknown before fine."""

from pathlib import Path

import msgspec
import pytest

from agent.config.settings import DegradedSettings, ProbeSettings
from agent.model.probe import ProbeRecord
from agent.model.snapshot import Card, CardIdentity
from agent.probes.quick import (
    NodeJudgement,
    judge_nothing,
    judge_records,
    judgement_text,
    known_references,
    side_by_side,
)
from agent.state.store import Store
from tests.support.clock import FakeClock
from tests.support.records import START_S, record, reference

CARDS = tuple(Card(CardIdentity(index, f"GPU-{index}", "NVIDIA Nothing")) for index in range(4))


def node(*values: float | str, cards: tuple[Card, ...] = CARDS, expected: int = -1) -> NodeJudgement:
    """Judge four cards by value, or by the reason for which there is none."""
    records: dict[str, ProbeRecord] = {}
    for index, value in enumerate(values):
        uuid = f"GPU-{index}"
        if isinstance(value, str):
            status = "wrong_answer" if value == "exact_mismatch" else "skipped"
            records[uuid] = record(START_S, uuid=uuid, gpu=index, status=status, reason=value)  # type: ignore[arg-type]
        else:
            records[uuid] = record(START_S, value, uuid=uuid, gpu=index)
    return judge_records(cards, records, (), DegradedSettings(), expected)


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ((660e12, 661e12, 659e12, 660e12), 0),
        ((660e12, 661e12, 300e12, 660e12), 10),
        ((660e12, 661e12, 300e12, "busy"), 11),
        (("exact_mismatch", "busy", "busy", "busy"), 10),
        ((660e12, 661e12, 659e12, "busy"), 11),
        (("busy", "busy", "busy", "busy"), 11),
    ],
)
def test_exit_code_is_that_of_the_worst_card(values: tuple[float | str, ...], code: int) -> None:
    """A busy card is not judged, and its neighbours miss a witness."""
    assert node(*values).exit_code == code


def test_lost_card_is_bad_whatever_was_measured() -> None:
    """The driver's word counts."""
    cards = (*CARDS[:3], msgspec.structs.replace(CARDS[3], lost="GPU_IS_LOST"))
    judgement = node(660e12, 660e12, 660e12, "no_telemetry", cards=cards)
    assert judgement.exit_code == 10
    assert judgement.cards[3].spot.state == "lost"


def test_missing_card_is_bad() -> None:
    """Three of the eight that there should be are four too few."""
    judgement = node(660e12, 660e12, 660e12, 660e12, expected=8)
    assert judgement.exit_code == 10
    assert "4 of 8" in judgement.note


def test_node_without_cards_is_fine_and_a_silent_driver_is_not() -> None:
    """A node without a GPU is a normal node; cards that the driver does not show are not judged."""
    assert judge_nothing((), "LIBRARY_NOT_FOUND").exit_code == 0
    silent = judge_nothing(("0000:1b:00.0",), "LIB_RM_VERSION_MISMATCH")
    assert silent.exit_code == 11
    assert "LIB_RM_VERSION_MISMATCH" in silent.note


def test_children_at_once_are_bounded_by_the_host() -> None:
    """At least one, never more than cards; a host without memory for two runs one."""
    assert side_by_side(ProbeSettings(host_memory_mib=0), 1) == 1
    assert side_by_side(ProbeSettings(host_memory_mib=1e9), 8) == 1


def test_references_are_read_beside_a_running_agent(tmp_path: Path) -> None:
    """The agent's lock on its state does not keep a reader out."""
    store = Store.open(tmp_path, FakeClock())
    store.add_reference(reference())
    assert known_references(tmp_path) == (reference(),)
    store.close()
    assert known_references(tmp_path / "nowhere") == ()


def test_people_get_a_line_for_each_card() -> None:
    """State, value, distance and what to do."""
    lines = judgement_text(node(660e12, 661e12, 300e12, 660e12)).splitlines()
    assert len(lines) == 5
    assert "degraded" in lines[3]
    assert "300 TFLOP/s" in lines[3]
    assert "-54.5%" in lines[3]
