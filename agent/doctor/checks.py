"""The checks: pure functions from the facts to what was found, in the order in which causes shadow each other."""

from collections.abc import Callable, Iterator
from typing import Final

from agent.doctor.check import Check, Outcome
from agent.doctor.facts import Facts
from agent.model.next_action import next_action
from agent.model.probe import ProbeResult
from agent.model.snapshot import Card
from agent.model.vocabulary import PROBE_REASONS

_GIB: Final = 1 << 30
LEAST_SHM_BYTES: Final = 1 << 30
"""Container runtimes give 64 MiB by default, which worker processes of data loaders outgrow; a GiB seldom pinches."""
LEAST_MEMORY_BYTES: Final = 4 << 30
"""A probe child takes up to 2.6 GB of host memory on a card, as measured with TensorFlow 2.21."""
LEAST_CORES: Final = 2.0


def driver(facts: Facts) -> Iterator[Check]:
    """Say whether the driver answers."""
    nvml = facts.reading.nvml
    if nvml.up:
        yield Check("driver", "pass", f"driver {nvml.driver}, NVML {nvml.nvml}, {len(facts.reading.cards)} cards")
    elif not facts.pci_bus_ids and facts.kernel_module is None:
        yield Check("driver", "skip", "no NVIDIA card on the PCI bus and no driver: a node without a GPU")
    else:
        yield Check("driver", "fail", f"NVML says {nvml.error or 'nothing'}", nvml.advice)


def kernel_module(facts: Facts) -> Iterator[Check]:
    """Say whether the kernel's side of the driver is loaded."""
    if facts.kernel_module:
        yield Check("kernel module", "pass", facts.kernel_module)
    elif facts.pci_bus_ids:
        yield Check(
            "kernel module",
            "warn" if facts.contained else "fail",
            "/proc/driver/nvidia/version is not there",
            "modprobe nvidia, then look at dmesg" if not facts.contained else "mount the host's /proc, or look there",
        )


def cards(facts: Facts) -> Iterator[Check]:
    """Say whether the driver shows every card that the PCI bus has, and each answers."""
    if not facts.reading.nvml.up:
        return
    seen = {card.identity.pci_bus_id for card in facts.reading.cards}
    missing = [bus_id for bus_id in facts.pci_bus_ids if bus_id not in seen]
    if missing:
        action = "look for the driver's errors about it in dmesg; in a container, see which cards it was given"
        outcome: Outcome = "warn" if facts.contained else "fail"
        yield Check("cards", outcome, f"on the PCI bus but not shown by the driver: {', '.join(missing)}", action)
    for card in facts.reading.cards:
        if card.lost:
            yield Check(_name(card), "fail", f"the driver says {card.lost}", "reset the card, or power-cycle the node")
    if not missing and not any(card.lost for card in facts.reading.cards):
        yield Check("cards", "pass", f"all {len(seen)} answer")


def device_nodes(facts: Facts) -> Iterator[Check]:
    """Say whether this user may open the driver's device files."""
    if not facts.pci_bus_ids and not facts.device_nodes:
        return
    closed = [name for name, open_ in facts.device_nodes.items() if not open_ and not name.endswith("-caps")]
    if not facts.device_nodes:
        yield Check("device files", "fail", "there is no /dev/nvidia*", "run nvidia-modprobe -u -c 0 as root")
    elif closed:
        action = "add this user to the group that owns them, or allow them in the unit or the container"
        yield Check("device files", "fail", f"this user may not open {', '.join(closed)}", action)
    else:
        yield Check("device files", "pass", f"{len(facts.device_nodes)} open to this user")


def tensorflow(facts: Facts) -> Iterator[Check]:
    """Say whether a product went through TensorFlow where it should."""
    record = facts.probe
    if record is None:
        yield Check("TensorFlow", "skip", "not tried")
        return
    result, versions = record.result, record.environment
    where = f"on GPU {record.gpu}" if record.gpu is not None else "on the CPU"
    what = f"TensorFlow {versions.tensorflow}, CUDA {versions.cuda or 'none'}, cuDNN {versions.cudnn or 'none'}"
    prefix = f"{what}: " if versions.tensorflow else ""
    if result.status == "ok":
        yield Check("TensorFlow", "pass", f"{prefix}a product came out right {where}")
    elif result.status == "skipped":
        yield Check("TensorFlow", "skip", f"not tried {where}: {_meaning(result)}", next_action(record))
    else:
        detail = f": {result.detail}" if result.detail else ""
        yield Check("TensorFlow", "fail", f"{prefix}{where}: {_meaning(result)}{detail}", next_action(record))


def shared_memory(facts: Facts) -> Iterator[Check]:
    """Say whether /dev/shm is large enough for data loaders."""
    if facts.shm_bytes is None:
        yield Check("shared memory", "warn", "not mounted", "mount a tmpfs at /dev/shm; data loaders need it")
    elif facts.shm_bytes < LEAST_SHM_BYTES:
        action = "give the container more (--shm-size, or an emptyDir with medium Memory)"
        yield Check(
            "shared memory", "warn", f"{facts.shm_bytes / 2**20:.0f} MiB in /dev/shm: data loaders may fail", action
        )
    else:
        yield Check("shared memory", "pass", f"{facts.shm_bytes / _GIB:.1f} GiB in /dev/shm")


def container(facts: Facts) -> Iterator[Check]:
    """Say what a container runtime gave this process."""
    if not facts.contained:
        yield Check("container", "pass", "not in a container")
        return
    found = "in a container"
    if facts.injected:
        found += " with " + ", ".join(f"{name}={value}" for name, value in sorted(facts.injected.items()))
    capabilities = facts.injected.get("NVIDIA_DRIVER_CAPABILITIES", "all")
    if facts.pci_bus_ids and capabilities != "all" and not {"compute", "utility"} <= set(capabilities.split(",")):
        action = "set NVIDIA_DRIVER_CAPABILITIES=compute,utility"
        yield Check("container", "fail", found, action)
    else:
        yield Check("container", "pass", found)


def process_ids(facts: Facts) -> Iterator[Check]:
    """Say whether it can be known whose processes are on a card."""
    if facts.host_pids:
        yield Check("process ids", "pass", "this process sees the host's own")
    else:
        action = 'share the host\'s pid namespace (hostPID: true), or set probe.trust_pids = "yes" if it is shared'
        yield Check("process ids", "warn", "another pid namespace: no scheduled probes, no input_bound", action)


def limits(facts: Facts) -> Iterator[Check]:
    """Say whether CPU and memory limits leave room for a probe child."""
    cores = min(facts.cpu_quota_cores or facts.cores, float(facts.cores))
    if cores < LEAST_CORES:
        yield Check("CPU limit", "warn", f"{cores:g} cores: probes would measure the host", "allow 2 cores or more")
    else:
        yield Check("CPU limit", "pass", f"{cores:g} cores")
    limit_bytes = facts.memory_limit_bytes
    if limit_bytes is not None and limit_bytes < LEAST_MEMORY_BYTES:
        action = "allow 4 GiB or more, or probes are skipped with host_memory"
        yield Check("memory limit", "warn", f"{limit_bytes / _GIB:.1f} GiB", action)
    else:
        yield Check("memory limit", "pass", "none" if limit_bytes is None else f"{limit_bytes / _GIB:.1f} GiB")


def clocks(facts: Facts) -> Iterator[Check]:
    """Say whether a card's power limit, persistence and application clocks are as delivered."""
    for card in facts.reading.cards:
        values = card.values
        enforced, default = values.get("power_limit_enforced_watts"), values.get("power_limit_default_watts")
        if enforced is not None and default is not None and enforced < default:
            found = f"power limit {enforced:.0f} W, below the default of {default:.0f} W"
            yield Check(
                _name(card), "warn", found, f"nvidia-smi -i {card.identity.index} -pl {default:.0f}, if unintended"
            )
        if values.get("persistence_enabled") == 0.0:
            found = "persistence mode is off: every first call waits for the driver"
            yield Check(_name(card), "warn", found, "enable nvidia-persistenced")


def links(facts: Facts) -> Iterator[Check]:
    """Say what the PCIe link of each card can do; whether it does it shows only under load."""
    for card in facts.reading.cards:
        width, most = card.values.get("pcie_width_lanes"), card.values.get("pcie_width_max_lanes")
        if width is not None and most is not None and width < most:
            found = f"PCIe width x{width:.0f} of x{most:.0f}"
            yield Check(_name(card), "warn", found, "reseat the card or its riser; probe bandwidth tells what it costs")


def hypervisor(facts: Facts) -> Iterator[Check]:
    """Say whether the machine is virtual."""
    yield Check("hypervisor", "pass", facts.hypervisor or "not known")


CHECKS: Final[tuple[Callable[[Facts], Iterator[Check]], ...]] = (
    driver, kernel_module, cards, device_nodes, tensorflow, shared_memory, container, process_ids, limits, clocks,
    links, hypervisor,
)  # fmt: skip


def examine(facts: Facts) -> tuple[Check, ...]:
    """Return what every check found."""
    return tuple(check for examine_ in CHECKS for check in examine_(facts))


def _meaning(result: ProbeResult) -> str:
    """Return what a reason means, and the reason itself with its value."""
    meaning = PROBE_REASONS[result.status].get(result.reason.partition(":")[0], "")
    return f"{meaning} ({result.reason})" if meaning else result.reason


def _name(card: Card) -> str:
    return f"GPU {card.identity.index}"
