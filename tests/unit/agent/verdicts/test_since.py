"""Tests of agent.verdicts.since."""

import pytest

from agent.verdicts.since import RESTORE_S, SAVE_EVERY_S, SinceTable
from tests.support.views import MemoryDocuments

A = ("GPU-a", "xid", "xid_48")
B = ("GPU-a", "power_cap", "default_limit")


def test_what_begins_keeps_its_time_until_it_ends() -> None:
    """What ends and returns begins anew."""
    table = SinceTable(MemoryDocuments(), "verdicts", 0.0)

    assert table.update({A}, 0, 100) == ({A}, set())
    assert table.update({A, B}, 1, 101) == ({B}, set())
    assert (table[A], table[B]) == (100, 101)
    assert table.update({B}, 2, 102) == (set(), {A})
    assert table.update({A, B}, 3, 103) == ({A}, set())
    assert table[A] == 103


def test_times_outlive_a_restart() -> None:
    """A finding that is seen again soon after a start keeps its old time."""
    documents = MemoryDocuments()
    SinceTable(documents, "verdicts", 0.0).update({A}, 0, 100)

    after = SinceTable(documents, "verdicts", 5.0)
    after.update(set(), 5, 500)
    after.update({A}, 40, 540)

    assert after[A] == 100


def test_what_is_not_seen_again_is_forgotten() -> None:
    """A quarter of an hour after the start a finding is a new one."""
    documents = MemoryDocuments()
    SinceTable(documents, "verdicts", 0.0).update({A}, 0, 100)

    after = SinceTable(documents, "verdicts", 0.0)
    after.update(set(), RESTORE_S + 1, 2000)
    after.update({A}, RESTORE_S + 2, 2001)

    assert after[A] == 2001


def test_a_restart_within_the_first_minutes_loses_nothing() -> None:
    """What a restart has not yet seen again is written with the rest."""
    documents = MemoryDocuments()
    SinceTable(documents, "verdicts", 0.0).update({A}, 0, 100)
    SinceTable(documents, "verdicts", 0.0).update({B}, 0, 200)

    third = SinceTable(documents, "verdicts", 0.0)
    third.update({A, B}, 1, 300)

    assert (third[A], third[B]) == (100, 200)


def test_flapping_writes_no_more_than_every_ten_seconds() -> None:
    """A minute of flapping is at most seven writes, and the last state is written."""
    documents = MemoryDocuments()
    table = SinceTable(documents, "verdicts", 0.0)
    for n in range(60):
        table.update({A} if n % 2 else set(), n, n)
    table.update({A}, 60 + SAVE_EVERY_S, 70)

    assert documents.saves <= 8
    assert b"xid_48" in documents.documents["verdicts"]


def test_nothing_is_written_while_nothing_changes() -> None:
    """A healthy day costs no write."""
    documents = MemoryDocuments()
    table = SinceTable(documents, "verdicts", 0.0)
    for n in range(1000):
        table.update({A}, n, n)

    assert documents.saves == 1


@pytest.mark.parametrize("data", [b"", b"{}", b"[{}]", b"\xff\xfe", b'[{"subject": 1}]'])
def test_a_document_that_is_not_ours_counts_as_none(data: bytes) -> None:
    """A damaged document never stops a start."""
    documents = MemoryDocuments()
    documents.documents["verdicts"] = data

    table = SinceTable(documents, "verdicts", 0.0)
    table.update({A}, 0, 100)

    assert table[A] == 100
