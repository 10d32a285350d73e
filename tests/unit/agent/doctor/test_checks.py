"""Each check says what it found, and what to do where something is wrong."""

from typing import Any

import msgspec
import pytest

from agent.doctor.check import Check, worst
from agent.doctor.checks import examine
from agent.doctor.facts import Facts
from agent.model.probe import Environment, ProbeRecord, ProbeResult
from agent.model.snapshot import Card, CardIdentity, NvmlHealth
from agent.nvml.source import GpuReading

_BUS_ID = "0000:1b:00.0"
_CARD = Card(
    CardIdentity(0, "GPU-1", pci_bus_id=_BUS_ID),
    {
        "power_limit_enforced_watts": 700.0,
        "power_limit_default_watts": 700.0,
        "persistence_enabled": 1.0,
        "pcie_width_lanes": 16.0,
        "pcie_width_max_lanes": 16.0,
    },
)
_WELL = Facts(
    reading=GpuReading((_CARD,), NvmlHealth(up=True, driver="580.1", nvml="13.580.1")),
    pci_bus_ids=(_BUS_ID,),
    kernel_module="NVRM version: 580.1",
    device_nodes={"nvidia0": True, "nvidiactl": True},
    shm_bytes=8 << 30,
    contained=False,
    injected={},
    host_pids=True,
    cpu_quota_cores=None,
    memory_limit_bytes=None,
    cores=16,
    hypervisor="none",
    probe=None,
)


def _found(name: str, **changes: Any) -> Check:
    checks = {check.name: check for check in examine(msgspec.structs.replace(_WELL, **changes))}
    return checks[name]


def _probe(**result: Any) -> ProbeRecord:
    return ProbeRecord(
        0.0, 0, "GPU-1", ProbeResult("matmul", **result), Environment(tensorflow="2.21.0", cuda="12.5.1")
    )


def _on_cpu(**result: Any) -> ProbeRecord:
    return ProbeRecord(0.0, None, "cpu", ProbeResult("matmul", **result))


def test_a_well_machine_passes_every_check() -> None:
    """Nothing to warn of, nothing to do."""
    checks = examine(_WELL)
    assert {check.outcome for check in checks} == {"pass", "skip"}
    assert not any(check.next_action for check in checks)
    assert worst(checks) == "pass"


def test_a_node_without_a_card_is_well() -> None:
    """No card on the bus and no driver: skipped, never failed."""
    reading = GpuReading((), NvmlHealth(error="LIBRARY_NOT_FOUND", advice="install it"))
    facts = msgspec.structs.replace(_WELL, reading=reading, pci_bus_ids=(), kernel_module=None, device_nodes={})
    assert worst(examine(facts)) == "pass"


@pytest.mark.parametrize(
    ("name", "outcome", "changes", "wanted"),
    [
        ("driver", "fail", {"reading": GpuReading((), NvmlHealth(error="UNKNOWN", advice="look at dmesg"))}, "dmesg"),
        ("kernel module", "fail", {"kernel_module": None}, "modprobe nvidia"),
        ("cards", "fail", {"pci_bus_ids": (_BUS_ID, "0000:2b:00.0")}, "dmesg"),
        ("cards", "warn", {"pci_bus_ids": (_BUS_ID, "0000:2b:00.0"), "contained": True}, "which cards it was given"),
        ("device files", "fail", {"device_nodes": {}}, "nvidia-modprobe"),
        ("device files", "fail", {"device_nodes": {"nvidia0": False}}, "group"),
        ("shared memory", "warn", {"shm_bytes": 64 << 20}, "--shm-size"),
        ("shared memory", "warn", {"shm_bytes": None}, "mount"),
        ("process ids", "warn", {"host_pids": False}, "hostPID"),
        ("CPU limit", "warn", {"cpu_quota_cores": 0.5}, "2 cores"),
        ("memory limit", "warn", {"memory_limit_bytes": 1 << 30}, "4 GiB"),
        (
            "container",
            "fail",
            {"contained": True, "injected": {"NVIDIA_DRIVER_CAPABILITIES": "utility"}},
            "compute,utility",
        ),
    ],
)
def test_each_fault_has_its_outcome_and_its_action(
    name: str, outcome: str, changes: dict[str, Any], wanted: str
) -> None:
    """One thing wrong: the check of that name says so and what to do."""
    check = _found(name, **changes)
    assert (check.outcome, wanted in check.next_action) == (outcome, True), check


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ({"power_limit_enforced_watts": 500.0, "power_limit_default_watts": 700.0}, "-pl 700"),
        ({"persistence_enabled": 0.0}, "nvidia-persistenced"),
        ({"pcie_width_lanes": 8.0, "pcie_width_max_lanes": 16.0}, "reseat"),
    ],
)
def test_a_card_that_is_not_as_delivered_is_named(values: dict[str, float], wanted: str) -> None:
    """Power limit, persistence, link width."""
    card = msgspec.structs.replace(_CARD, values=values)
    check = _found("GPU 0", reading=GpuReading((card,), NvmlHealth(up=True)))
    assert check.outcome == "warn"
    assert wanted in check.next_action


def test_a_lost_card_fails() -> None:
    """The driver's word for it is passed on."""
    card = msgspec.structs.replace(_CARD, lost="GPU_IS_LOST", values={})
    assert "GPU_IS_LOST" in _found("GPU 0", reading=GpuReading((card,), NvmlHealth(up=True))).found


@pytest.mark.parametrize(
    ("result", "outcome", "wanted"),
    [
        ({"status": "ok", "value": 1.0}, "pass", "came out right on GPU 0"),
        ({"status": "skipped", "reason": "busy"}, "skip", "utilisation"),
        ({"status": "error", "reason": "missing_library:libcusolver.so.11"}, "fail", "libcusolver.so.11"),
        ({"status": "wrong_answer", "reason": "exact_mismatch", "detail": "1 of 64"}, "fail", "1 of 64"),
    ],
)
def test_tensorflow_passes_only_with_a_right_product(result: dict[str, Any], outcome: str, wanted: str) -> None:
    """What was skipped is no success, and a missing library is named."""
    check = _found("TensorFlow", probe=_probe(**result))
    assert (check.outcome, wanted in check.found) == (outcome, True), check


@pytest.mark.parametrize(
    ("probe", "found", "action"),
    [
        (_probe(status="error", reason="not_a_gpu_build"), "built without CUDA", "'tensorflow[and-cuda]'"),
        (_probe(status="error", reason="tensorflow_missing"), "has no TensorFlow", "'heatsoak[gpu]'"),
        (_on_cpu(status="error", reason="tensorflow_missing"), "has no TensorFlow", "'heatsoak[cpu]'"),
    ],
)
def test_a_tensorflow_that_cannot_be_used_is_told_how_to_be_cured(probe: ProbeRecord, found: str, action: str) -> None:
    """The fault in one line, the cure in the next."""
    check = _found("TensorFlow", probe=probe)
    assert found in check.found
    assert action in check.next_action
    assert found not in check.next_action


def test_a_container_that_got_nothing_for_cuda_says_only_that_it_is_one() -> None:
    """What was set is listed; nothing set is no news."""
    assert _found("container", contained=True).found == "in a container"
    given = _found("container", contained=True, injected={"NVIDIA_VISIBLE_DEVICES": "all"})
    assert given.found == "in a container with NVIDIA_VISIBLE_DEVICES=all"
