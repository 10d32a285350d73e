"""References leave the node and come back."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import StateError
from agent.state.exchange import export, read
from tests.support.records import reference

NOW_S = 2e9


def test_what_is_exported_comes_back_as_an_operators_word() -> None:
    """Figures stay; origin and time say that they were imported; a dispute is settled."""
    (back,) = read(export([reference(disputed=True, degraded_before=True)]), "f", NOW_S)
    assert back == reference(origin="imported", made_wall_s=NOW_S)


def changed(**fields: object) -> bytes:
    """Return an exported document whose reference has ``fields`` changed."""
    document: dict[str, Any] = json.loads(export([reference()]))
    document["references"][0] |= fields
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "not a document"),
        (b"\xff\xfe", "not a document"),
        (b"[]", "not a document"),
        (b'{"format": "other", "version": 1, "references": []}', "not a document"),
        (b'{"format": "heatsoak-references", "version": 2, "references": []}', "not a document"),
        (b'{"format": "heatsoak-references", "version": 1, "references": [{}]}', "not a document"),
        (changed(surprise=1), "surprise"),
        (changed(median="660"), "median"),
        (changed(median=0), r"references\[0\].median is 0.0; right would be a number above 0"),
        (changed(mad=-1), r"references\[0\].mad is -1.0"),
        (changed(runs=0), r"references\[0\].runs is 0"),
        (changed(uuid=""), r"references\[0\].uuid is empty"),
    ],
)
def test_a_document_with_a_fault_is_refused_with_its_place(data: bytes, expected: str) -> None:
    """One fault and nothing is taken; the message says where it lies."""
    with pytest.raises(StateError, match=expected) as raised:
        read(data, "given.json", NOW_S)
    assert "given.json" in str(raised.value)


def test_all_faults_are_named_at_once() -> None:
    """An operator mends a document once."""
    with pytest.raises(StateError) as raised:
        read(changed(median=-1, runs=0), "f", NOW_S)
    assert len(str(raised.value).splitlines()) == 3


@given(st.binary(max_size=400) | st.text(max_size=400).map(str.encode))
@settings(max_examples=200, deadline=None)
def test_no_input_raises_anything_but_our_error(data: bytes) -> None:
    """Garbage is refused in words."""
    with pytest.raises(StateError):
        read(data, "f", NOW_S)


def test_the_document_is_readable_and_names_its_format() -> None:
    """People and other tools see what it is."""
    document = msgspec.json.decode(export([]))
    assert document == {"format": "heatsoak-references", "version": 1, "references": []}
