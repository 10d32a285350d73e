"""What of a snapshot becomes which series."""

from collections.abc import Iterable

import msgspec
import pytest
from prometheus_client.core import Metric as Family

from agent.model.allocation import Allocation
from agent.model.metrics import Metric, Sample
from agent.model.quantities import QUANTITIES
from agent.model.snapshot import NvmlHealth, Snapshot
from agent.model.vocabulary import CARD_STATES, WORKLOAD_STATES
from exporters import families
from tests.support import snapshots

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def series_of(found: Iterable[Family]) -> Series:
    """Return every sample by its name and labels."""
    return {(sample.name, tuple(sample.labels.items())): sample.value for each in found for sample in each.samples}


def test_every_quantity_of_the_table_that_has_a_value_has_a_series() -> None:
    """No row is named here: the page follows the table."""
    values = {row.key: float(index + 1) for index, row in enumerate(QUANTITIES)}
    card = snapshots.card(3, values)
    found = series_of(families.quantities(snapshots.snapshot((card,))))
    base = (("gpu", "3"), ("uuid", card.identity.uuid))
    assert found == {(row.metric, base + tuple(row.labels)): values[row.key] for row in QUANTITIES}


def test_an_unknown_reading_has_no_series() -> None:
    """Neither 0 nor NaN stands for what is unknown."""
    cards = (snapshots.card(0, {"temperature_celsius": 40.0}), snapshots.card(1, {}))
    found = series_of(families.quantities(snapshots.snapshot(cards)))
    assert list(found.values()) == [40.0]


def test_a_lost_card_keeps_its_identity_and_loses_its_readings() -> None:
    """A card that fell off the bus is named and flagged."""
    snapshot = snapshots.mixed_node()
    lost = snapshots.uuid_of(6)
    found = series_of(families.cards(snapshot))
    assert found["heatsoak_gpu_lost", (("gpu", "6"), ("uuid", lost))] == 1
    assert found["heatsoak_gpu_lost", (("gpu", "5"), ("uuid", snapshots.uuid_of(5)))] == 0
    assert any(name == "heatsoak_gpu_info" and ("uuid", lost) in labels for name, labels in found)
    readings = series_of(families.quantities(snapshot))
    assert not any(("uuid", lost) in labels for _, labels in readings)


def test_the_info_series_says_who_the_card_is_and_where_it_sits() -> None:
    """All that does not belong on every series is on the info series."""
    ((_, labels),) = (key for key in series_of(families.cards(snapshots.idle_node())) if key[0] == "heatsoak_gpu_info")
    assert dict(labels) == {
        "gpu": "0",
        "uuid": snapshots.uuid_of(0),
        "name": "NVIDIA H200",
        "serial": "1652024000000",
        "pci_bus_id": "0000:1b:00.0",
        "driver": "580.159.04",
        "vbios": "96.00.A5.00.01",
        "compute_capability": "9.0",
        "node": "gpu-r07-n12",
        "rack": "R07",
        "position": "U12",
    }


def test_a_driver_that_is_down_is_named() -> None:
    """Down is 0 with the error's name, and no version is made up."""
    found = series_of(families.nvml(snapshots.driver_down_node()))
    assert found["heatsoak_nvml_up", ()] == 0
    assert found["heatsoak_nvml_error", (("error", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"),)] == 1
    assert found["heatsoak_nvml_reader_restarts_total", ()] == 3
    assert not any(name == "heatsoak_nvml_info" for name, _ in found)


def test_a_driver_that_is_up_has_no_error_series() -> None:
    """The error series exists only while there is an error; dropped values are told by quantity."""
    found = series_of(families.nvml(snapshots.idle_node()))
    assert found["heatsoak_nvml_up", ()] == 1
    assert not any(name == "heatsoak_nvml_error" for name, _ in found)
    assert found["heatsoak_nvml_values_dropped_total", (("quantity", "temperature_celsius"),)] == 2
    bare = Snapshot(0.0, 0.0, nvml=NvmlHealth(up=True))
    assert "heatsoak_nvml_values_dropped_total" not in {name for name, _ in series_of(families.nvml(bare))}


def test_nothing_to_collect_failed_and_well_are_three_things() -> None:
    """A collector that found nothing has attempts and no success; errors exist at 0 from the start."""
    found = series_of(families.health(snapshots.snapshot(failing=("disk",))))
    success = {dict(labels)["collector"]: value for (name, labels), value in found.items() if name.endswith("_success")}
    assert success["cpu"] == 1
    assert success["disk"] == 0
    assert "hypervisor" not in success
    assert found["heatsoak_collector_attempts_total", (("collector", "hypervisor"),)] == 4210
    assert found["heatsoak_collector_errors_total", (("collector", "disk"), ("reason", "not_found"))] == 12
    assert found["heatsoak_collector_errors_total", (("collector", "cpu"), ("reason", "not_found"))] == 0
    last = ("heatsoak_collector_last_success_timestamp_seconds", (("collector", "disk"),))
    assert found[last] == snapshots.TAKEN_WALL_S - 720
    assert not list(families.health(Snapshot(0.0, 0.0)))


def test_the_age_of_a_page_is_told_by_a_timestamp() -> None:
    """Freshness is a series, and so is how the loop fares."""
    found = series_of(families.loop(snapshots.idle_node()))
    assert found["heatsoak_snapshot_timestamp_seconds", ()] == snapshots.TAKEN_WALL_S
    assert found["heatsoak_ticks_total", ()] == 4210
    assert found["heatsoak_tick_overruns_total", ()] == 1


def test_exactly_one_state_of_each_card_and_workload_is_1() -> None:
    """States are state sets: one series a state, all always there."""
    found = series_of(families.verdicts(snapshots.mixed_node()))
    uuid = ("uuid", snapshots.uuid_of(5))
    states = {
        dict(key)["state"]: value
        for (name, key), value in found.items()
        if name == "heatsoak_card_state" and uuid in key
    }
    assert states == {state: float(state == "degraded") for state in CARD_STATES}
    starved = ("uuid", snapshots.uuid_of(4))
    workloads = {
        dict(key)["state"]: value
        for (name, key), value in found.items()
        if name == "heatsoak_workload_state" and starved in key
    }
    assert workloads == {state: float(state == "input_bound") for state in WORKLOAD_STATES}


def test_the_numbers_behind_a_finding_are_series_too() -> None:
    """Every number and threshold of the evidence is there under the finding's rule."""
    found = series_of(families.verdicts(snapshots.mixed_node()))
    numbers = {
        dict(labels)["quantity"]: value
        for (name, labels), value in found.items()
        if name == "heatsoak_verdict_evidence" and dict(labels)["rule"] == snapshots.THROTTLED.rule
    }
    assert numbers == dict(snapshots.THROTTLED.evidence)


def test_findings_name_rule_cause_and_since_when() -> None:
    """Each finding that holds is a series of its own, the node's with empty card labels."""
    found = series_of(families.verdicts(snapshots.mixed_node()))
    labels = (
        ("gpu", "2"),
        ("uuid", snapshots.uuid_of(2)),
        ("rule", "thermal"),
        ("cause", "hw_thermal"),
        ("state", "throttled"),
        ("mode", "on"),
    )
    assert found["heatsoak_verdict_active", labels] == 1
    assert found["heatsoak_verdict_since_timestamp_seconds", labels] == snapshots.THROTTLED.since_wall_s
    down = series_of(families.verdicts(snapshots.driver_down_node()))
    assert down["heatsoak_node_state", (("state", "nvml_down"),)] == 1
    assert down["heatsoak_node_state", (("state", "ok"),)] == 0
    node = next(labels for name, labels in down if name == "heatsoak_verdict_active")
    assert node[:2] == (("gpu", ""), ("uuid", ""))


def test_what_was_not_judged_has_no_state() -> None:
    """Before the first verdict there is none."""
    assert not list(families.verdicts(Snapshot(0.0, 0.0)))


def test_samples_follow_their_definitions() -> None:
    """Kind, help and label names are the collector's."""
    disk = Metric("heatsoak_host_disk_reads_total", "Reads.", "counter", ("device",))
    samples = [Sample(disk.name, 5.0, ("sda",)), Sample(disk.name, 6.0, ("sd\nb",))]
    (family,) = families.defined(samples, {disk.name: disk})
    assert (family.name, family.type, family.documentation) == ("heatsoak_host_disk_reads", "counter", "Reads.")
    assert [sample.labels for sample in family.samples] == [{"device": "sda"}, {"device": "sd\ufffdb"}]


def test_a_sample_without_a_fitting_definition_costs_itself_only() -> None:
    """The others are given before the fault is told."""
    good = Metric("heatsoak_host_load1", "Load.", "gauge")
    samples = [Sample("made_up", 1.0), Sample(good.name, 1.0, ("too", "many")), Sample(good.name, 2.0)]
    found = families.defined(samples, {good.name: good})
    assert [sample.value for sample in next(found).samples] == [2.0]
    with pytest.raises(LookupError, match="heatsoak_host_load1, made_up"):
        next(found)


def test_who_holds_a_card_is_a_series_of_its_own() -> None:
    """One a holder, with the card's two labels; text from outside is cleaned."""
    node = snapshots.snapshot((snapshots.card(0), snapshots.card(1)))
    held = (
        Allocation(snapshots.uuid_of(1), "ml", "train\n0", "main"),
        Allocation(snapshots.uuid_of(1), job="7"),
    )
    found = series_of(families.allocations(msgspec.structs.replace(node, allocations=held)))
    assert {name for name, _ in found} == {"heatsoak_gpu_allocation_info"}
    labels = [dict(pairs) for _, pairs in found]
    assert [(one["gpu"], one["uuid"]) for one in labels] == [("1", snapshots.uuid_of(1))] * 2
    holders = [(one["namespace"], one["container"], one["slurm_job"]) for one in labels]
    assert holders == [("ml", "main", ""), ("", "", "7")]
    assert "\n" not in labels[0]["pod"]
    assert not list(families.allocations(node))
