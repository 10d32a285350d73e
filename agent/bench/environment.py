"""Where a benchmark is made: cards, software, host and container, without anything that names this very machine."""

import contextlib
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from agent.bench.model import BenchResult, CardFacts, Machine
from agent.bench.topology import topology
from agent.config.settings import Settings
from agent.doctor.bundle import redacted
from agent.doctor.facts import Facts, gather
from agent.host.collector import NothingHereError
from agent.host.fields import keyed_numbers
from agent.host.files import Tree
from agent.host.system import System
from agent.model.probe import DeviceKind, Environment, ProbeRecord
from agent.model.snapshot import Card, NvmlHealth
from agent.nvml.source import GpuReading

_KIB: Final = 1024
_CPU_NAMES: Final = re.compile(r"^(?:model name|cpu model)\s*:\s*(.+)$", re.MULTILINE)
_CPUINFO_LIMIT_BYTES: Final = 1 << 14
_ID_DIGITS: Final = 8
_IMAGE_ID: Final = re.compile(r"""^imageid="?(?:sha256:)?([0-9a-f]{12,64})"?$""", re.MULTILINE)
_ENGINE: Final = re.compile(r"""^engine="?([\w.-]+)"?$""", re.MULTILINE)
_FOLDERS: Final = re.compile(r"""(?<![\w.:/])/(?:[^\s/"']+/)+""")
"""The folders before a file's name; those of a URL, or of an operation's name, are none."""
_RUNTIMES: Final = ("docker", "containerd", "crio", "libpod", "lxc")


def machine_of(
    device: DeviceKind, cards: Sequence[Card], nvml: NvmlHealth, settings: Settings, environ: Mapping[str, str]
) -> Machine:
    """Return all that is known before the first measurement; its versions of TensorFlow and CUDA are empty."""
    facts = gather(settings, environ, GpuReading(tuple(cards), nvml), None)
    proc, sys = Tree(settings.host.proc_root), Tree(settings.host.sys_root)
    kernel, operating_system = _system(proc)
    return Machine(
        device=device,
        driver=nvml.driver,
        cpu=cpu_name(proc),
        cpus=usable_cpus(facts),
        memory_bytes=usable_memory_bytes(facts, proc),
        shm_bytes=facts.shm_bytes,
        hypervisor=facts.hypervisor,
        kernel=kernel,
        operating_system=operating_system,
        container=container(environ),
        topology=topology(cards, sys),
        cards=tuple(card_facts(card) for card in cards),
    )


def with_software(machine: Machine, software: Environment) -> Machine:
    """Return the machine with the versions that a probe child found; what the driver said itself stays."""
    return msgspec.structs.replace(
        machine,
        python=software.python,
        tensorflow=software.tensorflow,
        cuda=software.cuda,
        cudnn=software.cudnn,
        driver=machine.driver or software.driver,
    )


def default_label(machine: Machine) -> str:
    """Return what to call a result that nobody named: what it measured, and TensorFlow's version."""
    count = f"{len(machine.cards)} x " if len(machine.cards) > 1 else ""
    what = f"{count}{machine.cards[0].name}" if machine.cards else machine.cpu or "CPU"
    return f"{what}, TensorFlow {machine.tensorflow or 'unknown'}"


def card_id(uuid: str) -> str:
    """Return eight hexadecimal digits for a card's UUID, from which it cannot be had back."""
    return hashlib.sha256(uuid.encode()).hexdigest()[:_ID_DIGITS]


def card_facts(card: Card) -> CardFacts:
    """Return what a result says about a card."""
    values, identity = card.values, card.identity
    return CardFacts(
        index=identity.index,
        id=card_id(identity.uuid),
        name=identity.name,
        compute_capability=identity.compute_capability,
        vbios=identity.vbios,
        memory_bytes=values.get("memory_total_bytes"),
        power_limit_watts=values.get("power_limit_enforced_watts"),
        power_limit_default_watts=values.get("power_limit_default_watts"),
        clock_sm_max_hertz=values.get("clock_max_sm_hertz"),
        clock_memory_max_hertz=values.get("clock_max_memory_hertz"),
        ecc_enabled=_flag(values, "ecc_enabled"),
        mig_enabled=_flag(values, "mig_enabled"),
        pcie_generation_max=values.get("pcie_generation_max"),
        pcie_width_max_lanes=values.get("pcie_width_max_lanes"),
    )


def masked(record: ProbeRecord) -> ProbeRecord:
    """Return a record that names its card by the digits of :func:`card_id` alone, and no folder of this machine."""
    device = record.device
    if device is not None:
        device = msgspec.structs.replace(device, uuid=card_id(device.uuid) if device.uuid else "", pci_bus_id="")
    detail = _FOLDERS.sub("", redacted(record.result.detail, ()))
    result = msgspec.structs.replace(record.result, detail=detail)
    uuid = record.uuid if record.uuid == "cpu" else card_id(record.uuid)
    return msgspec.structs.replace(record, uuid=uuid, device=device, result=result)


def differences(stored: BenchResult, now: Machine) -> list[str]:
    """Return why measurements made now do not belong to a stored result, one line each; empty where they do.

    TensorFlow and power limits count only where they are known on both sides.
    """
    was = stored.machine
    pairs = [
        ("device", was.device, now.device),
        ("cards", _cards(was), _cards(now)),
        ("driver", was.driver, now.driver),
        ("processor", _processor(was), _processor(now)),
    ]
    if was.tensorflow and now.tensorflow:
        pairs.append(("TensorFlow", was.tensorflow, now.tensorflow))
    for old, new in zip(was.cards, now.cards, strict=False):
        if old.power_limit_watts and new.power_limit_watts:
            limits = f"{old.power_limit_watts:g} W", f"{new.power_limit_watts:g} W"
            pairs.append((f"power limit of gpu {new.index}", *limits))
    return [f"{name}: {old or 'none'} in the file, {new or 'none'} now" for name, old, new in pairs if old != new]


def cpu_name(proc: Tree) -> str:
    """Return the processor's model name, empty where the kernel does not say."""
    with contextlib.suppress(OSError):
        found = _CPU_NAMES.search(proc.read("cpuinfo", _CPUINFO_LIMIT_BYTES))
        return found[1].strip() if found else ""
    return ""


def usable_cpus(facts: Facts) -> int:
    """Return how many CPUs may be used, a quota's fraction counted as a whole one."""
    quota = facts.cpu_quota_cores
    return facts.cores if quota is None else max(1, min(facts.cores, math.ceil(quota)))


def usable_memory_bytes(facts: Facts, proc: Tree) -> int | None:
    """Return the host's memory, or the control group's limit where that is less; None where neither is known."""
    total = None
    with contextlib.suppress(OSError, ValueError, KeyError):
        total = int(keyed_numbers(proc.read("meminfo"))["MemTotal"] * _KIB)
    return min((known for known in (total, facts.memory_limit_bytes) if known is not None), default=None)


def container(environ: Mapping[str, str], root: Path = Path("/")) -> str:
    """Return what can be known from inside of the container this runs in; empty outside of one.

    As ``podman-4.9.3, image 0f3e…`` or ``kubernetes, containerd``. Only podman tells the image's id.
    """
    note = _text(root / "run/.containerenv")
    engine, image = _ENGINE.search(note or ""), _IMAGE_ID.search(note or "")
    parts = [
        "kubernetes" if environ.get("KUBERNETES_SERVICE_HOST") else "",
        engine[1] if engine else "podman" if note is not None else "",
        "docker" if (root / ".dockerenv").exists() else "",
        _runtime(_text(root / "proc/self/cgroup") or ""),
        environ.get("container", ""),
    ]
    named = list(dict.fromkeys(filter(None, parts)))
    return ", ".join([*named, *([f"image {image[1]}"] if image else [])])


def _runtime(membership: str) -> str:
    """Return the runtime that a control group's path names; it shows where the group has no namespace."""
    return next((name for name in _RUNTIMES if name in membership), "")


def _system(proc: Tree) -> tuple[str, str]:
    with contextlib.suppress(OSError, NothingHereError):
        labels = System(proc, Tree("/etc")).collect()[0].labels
        return labels[0], labels[1]
    return "", ""


def _cards(machine: Machine) -> str:
    return ", ".join(f"{card.index} {card.name} {card.id}" for card in machine.cards)


def _processor(machine: Machine) -> str:
    return f"{machine.cpus} x {machine.cpu or 'unknown'}"


def _flag(values: Mapping[str, float], key: str) -> bool | None:
    return bool(values[key]) if key in values else None


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
