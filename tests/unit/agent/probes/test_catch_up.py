"""A run that was skipped because the card was in use is made up for, without racing the card's tenants."""

import pytest

from agent.model.probe import ProbeResult
from agent.model.vocabulary import PROBE_REASONS, ProbeStatus
from agent.probes.catch_up import IN_USE, CatchUp

HOUR_S = 3600.0
UUID = "GPU-a"


def pair(status: ProbeStatus, reason: str = "") -> list[ProbeResult]:
    """Return the results of a run of both judged probes."""
    return [ProbeResult(probe="matmul", status=status, reason=reason), ProbeResult("resnet50", status, reason)]


def waiting() -> CatchUp:
    """Return one whose card was busy at 0."""
    catch_up = CatchUp(HOUR_S)
    catch_up.learn(UUID, pair("skipped", "busy"), 0.0)
    return catch_up


def test_a_card_that_was_in_use_is_due_a_minute_later_and_until_it_ran() -> None:
    """Not at the next hour: whether it is idle then is luck."""
    catch_up = waiting()
    assert catch_up.due(59.0) == ()
    assert catch_up.due(60.0) == catch_up.due(10 * HOUR_S) == (UUID,)
    catch_up.attempt(UUID)
    catch_up.learn(UUID, pair("ok"), 70.0)
    assert catch_up.due(10 * HOUR_S) == ()


@pytest.mark.parametrize("reason", ["duty_budget", "environment_backoff", "host_memory", "mig_mode", "no_host_pid"])
def test_what_waiting_does_not_cure_is_not_waited_for(reason: str) -> None:
    """It also ends a wait: the next run by the hour sees."""
    catch_up = CatchUp(HOUR_S)
    catch_up.learn(UUID, pair("skipped", reason), 0.0)
    assert catch_up.due(HOUR_S) == ()
    catch_up = waiting()
    catch_up.learn(UUID, pair("skipped", reason), 1.0)
    assert catch_up.due(HOUR_S) == ()


def test_runs_by_the_hour_leave_a_wait_as_it_is() -> None:
    """A card in use for a day is caught up with as soon as one in use for an hour."""
    catch_up = waiting()
    for hour in range(1, 24):
        catch_up.learn(UUID, pair("skipped", "foreign_process"), hour * HOUR_S)
    assert catch_up.due(24 * HOUR_S) == (UUID,)


def test_tenants_are_not_raced_for() -> None:
    """Each attempt that a tenant ended doubles the pause, up to an hour; a good run makes it a minute again."""
    catch_up = waiting()
    now_s, pauses = 60.0, []
    for _ in range(8):
        catch_up.attempt(UUID)
        catch_up.learn(UUID, [*pair("ok")[:1], *pair("aborted", "tenant_arrived")[1:]], now_s)
        began_s = now_s
        while catch_up.due(now_s) == ():
            now_s += 1.0
        pauses.append(now_s - began_s)
    assert pauses == [120.0, 240.0, 480.0, 960.0, 1920.0, 3600.0, 3600.0, 3600.0]
    catch_up.learn(UUID, pair("ok"), now_s)
    catch_up.learn(UUID, pair("skipped", "busy"), now_s)
    assert catch_up.due(now_s + 60.0) == (UUID,)


def test_an_attempt_is_asked_for_once() -> None:
    """However long it waits for its turn, behind many cards, the card is not due again."""
    catch_up = waiting()
    catch_up.attempt(UUID)
    assert catch_up.due(10 * HOUR_S) == ()


def test_cards_wait_apart() -> None:
    """One that is in use keeps no other from its turn."""
    catch_up = waiting()
    catch_up.learn("GPU-b", pair("skipped", "allocated"), 30.0)
    assert catch_up.due(60.0) == (UUID,)
    assert catch_up.due(90.0) == (UUID, "GPU-b")


def test_the_reasons_are_words_of_the_vocabulary() -> None:
    """A reason that no probe gives would be waited for in vain."""
    assert {*PROBE_REASONS["skipped"], *PROBE_REASONS["aborted"]} >= IN_USE
