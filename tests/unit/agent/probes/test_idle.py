"""How a card's rest is learned: from what is seen, never from what is missing."""

import msgspec
import pytest

from agent.model.snapshot import Card, GpuProcess
from agent.probes.idle import MOST_IDLE_BYTES, IdleTracker, Rest, observe_card
from tests.unit.agent.probes.cards import MIB, UUID, card, compute, snapshot


def watched(*cards: Card, tenant: bool = False, ours: bool = False) -> Rest:
    """Observe one card, one reading a second from second 0."""
    rest = None
    for second, seen in enumerate(cards):
        rest = observe_card(rest, seen, float(second), tenant=tenant, ours=ours)
    assert rest is not None
    return rest


def test_rest_counts_from_the_first_quiet_reading() -> None:
    """Quiet since the first 0 after the last work."""
    assert watched(card(), card(utilization=0.4), card(), card(), card()).quiet_since_s == 2.0


@pytest.mark.parametrize("utilization", [0.01, None])
def test_work_or_silence_breaks_rest(utilization: float | None) -> None:
    """An unknown utilisation is no rest."""
    assert watched(card(), card(), card(utilization=utilization)).quiet_since_s is None


def test_a_tenant_breaks_rest_and_teaches_no_level() -> None:
    """A process that computes nothing for now is still a tenant."""
    rest = watched(card(used_mib=40_000), tenant=True)
    assert (rest.quiet_since_s, rest.idle_bytes) == (None, None)


def test_idle_level_is_the_least_seen_without_a_tenant() -> None:
    """Later, higher use is no new level."""
    assert watched(card(used_mib=20), card(used_mib=4), card(used_mib=900)).idle_bytes == 4 * MIB


def test_a_tenant_nobody_can_see_at_the_start_is_no_idle_level() -> None:
    """Use beyond what any card at rest needs is not believed to be rest."""
    assert watched(card(used_mib=40_000)).idle_bytes == MOST_IDLE_BYTES


def test_a_gap_in_the_readings_breaks_rest() -> None:
    """Nobody knows what happened while the agent was suspended."""
    before = observe_card(None, card(), 0.0, tenant=False, ours=False)
    assert observe_card(before, card(), 30.0, tenant=False, ours=False).quiet_since_s == 30.0


def test_another_driver_teaches_its_own_level() -> None:
    """What the old driver needed says nothing about the new one."""
    before = observe_card(None, card(used_mib=4), 0.0, tenant=False, ours=False)
    after = observe_card(before, card(used_mib=500, driver="600.1"), 1.0, tenant=False, ours=False)
    assert after.idle_bytes == 500 * MIB


def test_our_own_probe_breaks_no_rest_and_teaches_no_level() -> None:
    """The next probe need not wait for the last one's traces."""
    before = observe_card(None, card(), 0.0, tenant=False, ours=False)
    during = observe_card(before, card(utilization=1.0, used_mib=9000), 1.0, tenant=False, ours=True)
    assert during == msgspec.structs.replace(before, seen_s=1.0)


def test_a_tenant_beside_our_probe_breaks_rest() -> None:
    """Our own work excuses nobody else's."""
    before = observe_card(None, card(), 0.0, tenant=False, ours=False)
    assert observe_card(before, card(utilization=1.0), 1.0, tenant=True, ours=True).quiet_since_s is None


def test_tracker_forgets_a_card_that_is_gone() -> None:
    """What is known of a card ends with the card."""
    tracker = IdleTracker(lambda: (), trust_pids=True)
    tracker.observe(snapshot(0.0, card()), ())
    assert tracker.rest(UUID) is not None
    tracker.observe(snapshot(1.0), ())
    assert tracker.rest(UUID) is None


def test_desktop_at_rest_is_no_tenant() -> None:
    """A display server that draws nothing leaves the card idle."""
    tracker = IdleTracker(lambda: (), trust_pids=True)
    desktop = (GpuProcess(1, "graphics", 1),)
    assert tracker.tenants(card(processes=desktop, utilization=0.04)) == ()
    assert tracker.tenants(card(processes=desktop, utilization=0.06)) == (1,)
    assert tracker.tenants(card(processes=desktop, utilization=None)) == (1,)


def test_pids_that_mean_nothing_name_no_tenant() -> None:
    """Without the host's ids our own child could not be told from a stranger."""
    assert IdleTracker(lambda: (), trust_pids=False).tenants(card(processes=(compute(1),))) == ()
