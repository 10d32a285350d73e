"""The JSON status: its documented form, and what it leaves out."""

import json

import msgspec
import pytest

from exporters.status import STATUS_VERSION, Status, encode_status, status_of
from tests.support import snapshots


@pytest.mark.parametrize("name", list(snapshots.ALL))
def test_the_document_is_of_its_form(name: str) -> None:
    """What is encoded decodes as the documented struct."""
    snapshot = snapshots.ALL[name]()
    document = msgspec.json.decode(encode_status(status_of(snapshot, version="1.2.3")), type=Status)
    assert (document.version, document.agent_version, document.fresh) == (STATUS_VERSION, "1.2.3", True)
    assert len(document.cards) == len(snapshot.cards)


def test_a_card_has_its_verdict_and_its_readings() -> None:
    """Cards and verdicts are joined by UUID."""
    document = json.loads(encode_status(status_of(snapshots.mixed_node(), version="1")))
    card = document["cards"][5]
    assert card["state"] == "degraded"
    assert card["findings"][0]["next_action"].startswith("Drain")
    assert card["values"]["temperature_celsius"] == 31.0
    assert document["node"]["rack"] == "R07"
    assert document["node"]["state"] == "ok"


def test_what_was_not_judged_is_null() -> None:
    """Neither ok nor unknown is made up."""
    status = status_of(snapshots.snapshot((snapshots.card(0),)), version="1")
    assert (status.cards[0].state, status.cards[0].workload, status.cards[0].findings) == (None, None, ())


def test_a_document_that_is_not_fresh_has_neither_readings_nor_verdicts() -> None:
    """It says who is there and how old it is."""
    status = status_of(snapshots.mixed_node(), version="1", fresh=False)
    assert status.fresh is False
    assert status.node.state is None
    assert {card.state for card in status.cards} == {None}
    assert not any(card.values for card in status.cards)


def test_text_that_utf8_cannot_hold_does_not_cost_the_document() -> None:
    """A lone surrogate becomes a question mark."""
    text = encode_status(status_of(snapshots.hostile_node(), version="1")).decode()
    assert "\ud800" not in json.loads(text)["node"]["name"]
