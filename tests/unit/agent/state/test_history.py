"""Finished probes are kept by count."""

from agent.state import history
from agent.state.database import in_memory
from tests.support.records import START_S, record


def test_history_is_bounded_and_keeps_judged_records_longest() -> None:
    """A card that is skipped all day pushes out neither its judged runs nor its wrong answers."""
    connection = in_memory()
    history.add(connection, record(START_S, status="wrong_answer", reason="exact_mismatch"))
    for number in range(history.KEEP["judged"] + 30):
        history.add(connection, record(START_S + number))
        history.add(connection, record(START_S + number + 0.5, status="skipped", reason="busy"))
    kept = history.newest(connection, dict.fromkeys(history.KEEP, 1000))
    assert {kind: sum(history.kind_of(one) == kind for one in kept) for kind in history.KEEP} == {
        **history.KEEP,
        "wrong": 1,
    }
    assert [one.wall_s for one in kept] == sorted(one.wall_s for one in kept)
    assert len(history.newest(connection, {"judged": 5, "wrong": 1, "other": 2})) == 8
    connection.close()


def test_the_same_record_twice_is_kept_once_and_each_card_on_its_own() -> None:
    """What a merge brings again does not double."""
    connection = in_memory()
    for uuid in ("GPU-a", "GPU-a", "GPU-b"):
        history.add(connection, record(START_S, uuid=uuid))
    assert [one.uuid for one in history.newest(connection, history.KEEP)] == ["GPU-a", "GPU-b"]
    connection.close()
