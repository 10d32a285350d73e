"""A broken environment is left alone for longer and longer, and blames no card."""

from agent.model.probe import ProbeResult
from agent.model.vocabulary import ProbeStatus
from agent.probes.backoff import MOST_S, EnvironmentBackoff

HOUR_S = 3600.0
UUID = "GPU-a"


def result(status: ProbeStatus, reason: str = "") -> ProbeResult:
    """Return a result of that kind."""
    return ProbeResult(probe="matmul", status=status, reason=reason)


MISSING = [result("error", "missing_library:libcusolver.so.11"), result("error", "missing_library:libcusolver.so.11")]


def test_waits_double_up_to_six_hours() -> None:
    """Each further failure doubles the wait."""
    backoff = EnvironmentBackoff(HOUR_S)
    waits = []
    now_s = 0.0
    for _ in range(6):
        backoff.learn(UUID, MISSING, now_s)
        wait_s = next(hours for hours in (1, 2, 4, 6, 12) if not backoff.holds(UUID, now_s + hours * HOUR_S))
        waits.append(wait_s)
        now_s += wait_s * HOUR_S
    assert waits == [1, 2, 4, 6, 6, 6]
    assert MOST_S == 6 * HOUR_S


def test_first_wait_lets_the_run_due_next_happen() -> None:
    """A run due an interval later, jitter included, is tried."""
    backoff = EnvironmentBackoff(HOUR_S)
    backoff.learn(UUID, MISSING, 0.0)
    assert backoff.holds(UUID, 0.8 * HOUR_S)
    assert not backoff.holds(UUID, 0.9 * HOUR_S)


def test_reason_is_kept_with_its_value_until_a_value_comes() -> None:
    """A good result proves the environment."""
    backoff = EnvironmentBackoff(HOUR_S)
    backoff.learn(UUID, MISSING, 0.0)
    assert backoff.reason == "missing_library:libcusolver.so.11"
    backoff.learn(UUID, [result("ok")], HOUR_S)
    assert backoff.reason == ""
    assert not backoff.holds(UUID, HOUR_S + 1)


def test_trouble_of_a_card_or_a_run_is_not_the_environments() -> None:
    """Out of memory, crash, timeout, tenant and skip neither start nor end a wait."""
    backoff = EnvironmentBackoff(HOUR_S)
    others = [
        result("error", "oom:1"),
        result("error", "crashed:SIGSEGV"),
        result("timeout", "deadline"),
        result("aborted", "tenant_arrived"),
        result("skipped", "unsupported"),
    ]
    backoff.learn(UUID, others, 0.0)
    assert not backoff.holds(UUID, 1.0)
    backoff.learn(UUID, MISSING, 0.0)
    backoff.learn(UUID, others, 1.0)
    assert backoff.holds(UUID, 2.0)


def test_wrong_answer_proves_that_the_environment_computes() -> None:
    """A wrong product is the card's doing."""
    backoff = EnvironmentBackoff(HOUR_S)
    backoff.learn(UUID, MISSING, 0.0)
    backoff.learn(UUID, [result("wrong_answer", "exact_mismatch")], 10.0)
    assert backoff.reason == ""


def test_a_sick_card_keeps_no_neighbour_from_being_probed() -> None:
    """What looks like a broken environment on one card is none while another one works."""
    backoff = EnvironmentBackoff(HOUR_S)
    backoff.learn(UUID, [result("error", "cuda_init_failed:999")], 0.0)
    assert backoff.reason == "cuda_init_failed:999"
    assert not backoff.holds("GPU-b", 1.0)
    backoff.learn("GPU-b", [result("ok")], 1.0)
    assert backoff.reason == ""
    assert backoff.holds(UUID, 2.0)
