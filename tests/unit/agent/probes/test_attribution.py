"""What a card did while it was measured, and which values may be held against it."""

from typing import Any

import msgspec
import pytest

from agent.model.probe import Attribution, ProbeResult, Timing
from agent.model.quantities import BY_KEY
from agent.model.snapshot import Card
from agent.probes.attribution import (
    SLOWING_REASONS,
    CardSample,
    attribute,
    busy_s,
    efficiency,
    may_judge,
)
from agent.probes.host_cpu import HostUse
from tests.unit.agent.probes.cards import card

RESULT = ProbeResult(
    probe="matmul",
    status="ok",
    dtype="bf16",
    value=6.6e14,
    unit="flop/s",
    timing=Timing(0.1, 0.1, 0.1, 0.0, 10, 20, 1.0, 1.0, 0.01),
)


def samples(*cards: Card, step_s: float = 0.1, tenant_at: int | None = None) -> list[CardSample]:
    """Return samples from second 10 on."""
    return [CardSample(10.0 + step_s * index, each, index == tenant_at) for index, each in enumerate(cards)]


def test_only_the_window_counts() -> None:
    """What the card did before and after the judged window is left out."""
    clocks = [2.1e8, 1.5e9, 1.6e9, 1.7e9, 2.1e8]
    found = attribute(samples(*(card(clock_sm_hertz=hertz) for hertz in clocks)), 10.05, 10.35)
    assert found is not None
    assert (found.samples, found.sm_clock_median_hertz) == (3, 1.6e9)


def test_circumstances_are_summed_up() -> None:
    """Highest temperature, mean power, the limit, and the share of each throttle reason."""
    cool = card(temperature_celsius=60.0, power_instant_watts=600.0, throttle_active_sw_power_cap=1.0)
    hot = card(temperature_celsius=66.0, power_instant_watts=700.0, throttle_active_sw_power_cap=0.0)
    found = attribute(samples(cool, hot, hot, cool), 10.0, 11.0)
    assert found is not None
    assert found.temperature_max_celsius == 66.0
    assert found.power_mean_watts == 650.0
    assert found.power_limit_watts is None
    assert found.throttle_share == {"sw_power_cap": 0.5}


def test_average_power_stands_in_for_instant() -> None:
    """Cards without an instant reading have an average one."""
    found = attribute(samples(card(power_watts=300.0)), 10.0, 11.0)
    assert found is not None
    assert found.power_mean_watts == 300.0


def test_memory_peaks_count_over_the_whole_run() -> None:
    """The peak may lie in the warm-up."""
    found = attribute(samples(card(used_mib=9000), card(used_mib=100)), 10.05, 10.15)
    assert found is not None
    assert found.memory_used_peak_bytes == 9000 * 1024 * 1024


def test_the_hosts_other_work_is_that_of_the_window() -> None:
    """From the first reading within it to the last; samples in between need have none."""
    uses = (HostUse(0.0, 10.0), HostUse(1.0, 20.0), None, HostUse(9.0, 30.0), HostUse(9.0, 40.0))
    seen = [CardSample(10.0 + index, card(), host=use) for index, use in enumerate(uses)]
    found = attribute(seen, 11.0, 13.0)
    assert found is not None
    assert found.host_cpu_share == 0.8
    unseen = attribute(samples(card()), 10.0, 11.0)
    assert unseen is not None
    assert unseen.host_cpu_share is None


def test_a_tenant_at_any_moment_contends() -> None:
    """It may have come between two samples of the window."""
    found = attribute(samples(card(), card(), card(), tenant_at=2), 10.0, 10.1)
    assert found is not None
    assert found.contended


def test_without_samples_nothing_is_said() -> None:
    """No readings are no attribution, and a result without a window has no samples in it."""
    assert attribute([], 10.0, 11.0) is None
    found = attribute(samples(card()), None, None)
    assert found is not None
    assert found.samples == 0


def test_busy_time_is_utilisation_over_time() -> None:
    """Half a second at full and half at half load are three quarters."""
    loads = [card(utilization=0.0)] + [card(utilization=1.0)] * 5 + [card(utilization=0.5)] * 5
    assert busy_s(samples(*loads)) == pytest.approx(0.75)


def test_throughput_is_given_per_clock_and_per_watt() -> None:
    """Figures that tell a slow card from a capped one."""
    attribution = Attribution(samples=30, sm_clock_median_hertz=1.5e9, power_mean_watts=660.0)
    assert efficiency(RESULT, attribution) == {"value_per_sm_clock": 6.6e14 / 1.5e9, "value_per_watt": 1e12}
    assert efficiency(RESULT, None) == efficiency(RESULT, Attribution(samples=30)) == {}


def test_undisturbed_judged_kinds_may_be_judged() -> None:
    """A bf16 product on a card that was alone and not slowed down."""
    assert may_judge(RESULT, Attribution(samples=30, throttle_share={"sw_power_cap": 1.0, "sw_thermal": 0.01}))


@pytest.mark.parametrize("reason", SLOWING_REASONS)
def test_slowed_down_runs_are_never_judged(reason: str) -> None:
    """Heat and power supply are their own verdict."""
    assert not may_judge(RESULT, Attribution(samples=30, throttle_share={reason: 0.1}))


@pytest.mark.parametrize(
    ("result", "attribution"),
    [
        ({}, {"contended": True}),
        ({}, {"samples": 4}),
        ({"dtype": "fp32"}, {}),
        ({"probe": "vgg16"}, {}),
        ({"variant": "article"}, {}),
        ({"figures": {"accumulate": 4.0}}, {}),
        ({"figures": {"replicas": 2.0}}, {}),
        ({"status": "error", "value": None}, {}),
        ({"timing": Timing(0.1, 0.1, 0.1, 0.0, 10, 20, 1.0, 1.0, 0.05)}, {}),
    ],
)
def test_what_says_nothing_about_the_card_is_not_judged(result: dict[str, Any], attribution: dict[str, Any]) -> None:
    """Shared, unseen, failed, host-bound and merely informative values stay out of the comparison."""
    found = msgspec.structs.replace(Attribution(samples=30), **attribution)
    assert not may_judge(msgspec.structs.replace(RESULT, **result), found)


def test_a_value_without_circumstances_is_not_judged() -> None:
    """Nobody saw the card."""
    assert not may_judge(RESULT, None)


def test_keys_are_those_of_the_quantities_table() -> None:
    """What is asked of a card exists under that name."""
    asked = {
        "clock_sm_hertz", "clock_memory_hertz", "temperature_celsius", "power_instant_watts", "power_watts",
        "power_limit_enforced_watts", "memory_used_bytes", "pcie_generation", "pcie_width_lanes",
        "utilization_ratio", "compute_mode", "mig_enabled",
        *(f"throttle_active_{reason}" for reason in SLOWING_REASONS),
    }  # fmt: skip
    assert asked <= BY_KEY.keys()
