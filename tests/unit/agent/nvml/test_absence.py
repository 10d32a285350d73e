"""Cards that are left out are tried again, ever more rarely."""

import pytest

from agent.nvml.absence import Absences


def test_retry_doubles_up_to_ten_minutes() -> None:
    """A card that hangs at each try waits 60, 120, 240, 480, then 600 s."""
    absences, now_s, waits = Absences(), 0.0, []
    for _ in range(6):
        absences.leave_out(3, "HUNG", now_s, now_s)
        failed_s = now_s
        while absences.due(now_s, ()) is None:
            now_s += 1
        waits.append(now_s - failed_s)
    assert waits == [60, 120, 240, 480, 600, 600]


def test_time_hung_runs_from_the_first_silence() -> None:
    """Tries in between do not begin it anew; a lost card does not hang."""
    absences = Absences()
    absences.leave_out(1, "HUNG", 10.0, 11.5)
    absences.leave_out(1, "HUNG", 71.5, 73.0)
    absences.leave_out(2, "GPU_IS_LOST", 11.0, 11.0)
    assert absences.hung_s(100.0) == {1: 90.0}
    assert absences.out() == [1, 2]


def test_card_that_is_back_is_remembered_for_a_while() -> None:
    """Hanging again soon after it came back it waits longer; after ten good minutes its past is forgotten."""
    absences = Absences()
    absences.leave_out(1, "HUNG", 0.0, 0.0)
    assert absences.back(1, 60.0)
    assert not absences.back(1, 61.0)
    assert absences.out() == []
    absences.leave_out(1, "HUNG", 100.0, 100.0)
    assert absences.due(219.0, ()) is None
    assert absences.due(220.0, ()) == 1
    absences.back(1, 220.0)
    assert absences.due(820.0, ()) is None
    absences.leave_out(1, "HUNG", 900.0, 900.0)
    assert absences.due(960.0, ()) == 1


@pytest.mark.parametrize(("paused", "expected"), [((), 1), ((1,), 2)])
def test_paused_card_is_not_tried(paused: tuple[int, ...], expected: int) -> None:
    """An operator's pause outweighs a retry that is due."""
    absences = Absences()
    absences.leave_out(1, "HUNG", 0.0, 0.0)
    absences.leave_out(2, "HUNG", 0.0, 0.0)
    assert absences.due(60.0, paused) == expected
