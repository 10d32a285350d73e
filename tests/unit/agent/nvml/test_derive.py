"""Derived readings add up what happened, and nothing that is not known."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.nvml.derive import (
    MAX_GAP_S,
    ThrottleTime,
    XidHistory,
    process_values,
    throttle_time,
    throttle_values,
    xid_history,
    xid_values,
)

HOT = {"throttle_active_hw_thermal": 1.0, "throttle_active_gpu_idle": 0.0, "utilization_ratio": 0.9}
COOL = {**HOT, "throttle_active_hw_thermal": 0.0}


def run(*steps: tuple[float, dict[str, float]]) -> ThrottleTime:
    """Return the state after readings at these times."""
    state = None
    for taken_s, values in steps:
        state = throttle_time(state, values, taken_s)
    assert state is not None
    return state


def test_sampled_time_is_the_time_between_readings() -> None:
    """Each reading accounts for the time since the one before it."""
    state = run((0, COOL), (1, HOT), (2, HOT), (3, COOL))
    assert state.sampled_s == {"hw_thermal": 2}
    assert throttle_values(state, HOT)["throttle_seconds_hw_thermal_sampled"] == 2
    assert throttle_values(state, HOT)["throttle_busy_seconds_hw_thermal"] == 2


def test_drivers_counter_takes_precedence() -> None:
    """Where the driver counts, its increments make the busy time and no sampled series is served."""
    state = run((0, {**COOL, "throttle_seconds_hw_thermal": 10.0}), (1, {**COOL, "throttle_seconds_hw_thermal": 10.25}))
    served = throttle_values(state, {**COOL, "throttle_seconds_hw_thermal": 10.25})
    assert served["throttle_busy_seconds_hw_thermal"] == 0.25
    assert "throttle_seconds_hw_thermal_sampled" not in served


def test_idle_card_gathers_no_busy_time() -> None:
    """Reasons that hold while the card has no work are not counted as time lost."""
    idle = {**HOT, "utilization_ratio": 0.0}
    assert run((0, idle), (1, idle)).busy_s == {}


def test_gap_is_not_attributed() -> None:
    """After a pause longer than three ticks nothing is added: what happened is not known."""
    assert run((0, HOT), (MAX_GAP_S + 0.1, HOT)).sampled_s == {}


def test_driver_reload_takes_nothing_away() -> None:
    """A driver's counter that starts again at 0 does not make ours fall."""
    state = run(
        (0, {**HOT, "throttle_seconds_hw_thermal": 50.0}),
        (1, {**HOT, "throttle_seconds_hw_thermal": 51.0}),
        (2, {**HOT, "throttle_seconds_hw_thermal": 0.5}),
    )
    assert state.busy_s == {"hw_thermal": 1}


def test_unknown_reasons_have_no_series() -> None:
    """Where the driver gives no reasons there is no sampled time, not even 0."""
    assert throttle_values(run((0, {}), (1, {})), {}) == {}


READING = st.fixed_dictionaries(
    {},
    optional={
        "throttle_active_hw_thermal": st.sampled_from([0.0, 1.0]),
        "throttle_active_sw_power_cap": st.sampled_from([0.0, 1.0]),
        "throttle_seconds_sw_power_cap": st.floats(0, 1e9),
        "utilization_ratio": st.floats(0, 1),
    },
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(-2, 10), READING), max_size=20))
def test_counters_never_fall_and_never_outrun_the_clock(steps: list[tuple[float, dict[str, float]]]) -> None:
    """Whatever is read, in whatever order of time, sampled time rises by at most the time that passed."""
    state, now_s, passed_s, last = None, 0.0, 0.0, 0.0
    for delta_s, values in steps:
        now_s += delta_s
        passed_s += max(0.0, delta_s)
        state = throttle_time(state, values, now_s)
        total = state.sampled_s.get("hw_thermal", 0.0)
        assert last <= total <= passed_s + 1e-6
        last = total


def test_xid_count_only_rises() -> None:
    """Events are counted, the last one is kept with its time; before the first there is only the 0."""
    assert xid_values(XidHistory()) == {"xid_events_total": 0}
    history = xid_history(xid_history(XidHistory(), (31, 79), 100.0), (), 200.0)
    assert xid_values(history) == {
        "xid_events_total": 2,
        "xid_last_code": 79,
        "xid_last_timestamp_seconds": 100,
    }


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        ((), {"processes": 0, "process_memory_bytes": 0}),
        ((5, 7), {"processes": 2, "process_memory_bytes": 12}),
        ((5, None), {"processes": 2}),
    ],
)
def test_process_memory_is_known_of_all_or_unknown(memory: tuple[int | None, ...], expected: dict[str, float]) -> None:
    """A sum that leaves out a process would be a lie."""
    assert process_values(memory) == expected
