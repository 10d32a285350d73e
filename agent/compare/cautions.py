"""What must be known before two results are compared: everything about them that moves figures and differs."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Final

import msgspec

from agent.bench.model import CardFacts, Machine
from agent.compare.model import Caution
from agent.compare.subjects import Subject, marks
from agent.model.text import clean_label

UNKNOWN: Final = "unknown"
_KERNELS: Final = "it brings the kernels of the networks, which may be faster or slower for that alone"


class _Trait(msgspec.Struct, frozen=True):
    """One fact, as text, empty where it is not known; and what another value may do to figures."""

    topic: str
    read: Callable[[Subject], str]
    effect: str
    card_only: bool = False
    same_model_only: bool = False


def cautions(subjects: Sequence[Subject]) -> Iterator[Caution]:
    """Yield what concerns one subject alone, then what differs within each pair."""
    for one in subjects:
        yield from _alone(one)
    for left, right in combinations(subjects, 2):
        yield from _differing(left, right)


def _alone(one: Subject) -> Iterator[Caution]:
    about = (one.label,)
    if not one.result.complete:
        detail = f"{len(one.result.steps)} steps were carried out and some are missing"
        yield Caution(about, "incomplete", detail, "headline figures may stand for smaller batches than planned")
    limit, default = (one.facts.power_limit_watts, one.facts.power_limit_default_watts) if one.facts else (None, None)
    if limit is not None and default is not None and limit < default:
        detail = f"{limit:g} W, by default {default:g} W"
        yield Caution(about, "power limit below default", detail, "a busy card is slower and spends less energy")
    disturbed = [at for at, point in one.best if marks(point.record)]
    if disturbed:
        detail = f"{len(disturbed)} of {len(one.best)} training figures were contended, slowed down or unsteady"
        yield Caution(about, "disturbed", detail, "they say more of the circumstances than of the card; each is marked")


def _differing(left: Subject, right: Subject) -> Iterator[Caution]:
    about = (left.label, right.label)
    kinds = {left.result.machine.device, right.result.machine.device}
    models = {left.card, right.card}
    for trait in _TRAITS:
        if (trait.card_only and kinds != {"gpu"}) or (trait.same_model_only and len(models) > 1):
            continue
        values = clean_label(trait.read(left)), clean_label(trait.read(right))
        if values[0] != values[1]:
            detail = f"{values[0] or UNKNOWN} against {values[1] or UNKNOWN}"
            yield Caution(about, trait.topic, detail, trait.effect)
    versions = _versions(left), _versions(right)
    for probe in sorted(versions[0].keys() & versions[1].keys()):
        if versions[0][probe] != versions[1][probe]:
            detail = f"{probe}: {versions[0][probe]} against {versions[1][probe]}"
            yield Caution(about, "method version", detail, "the measurements differ, so the figures are not comparable")


def _versions(one: Subject) -> dict[str, str]:
    found: dict[str, set[int]] = {}
    for step in one.result.steps:
        for record in step.records:
            if record.result.status == "ok":
                found.setdefault(record.result.probe, set()).add(record.result.method_version)
    return {probe: " and ".join(map(str, sorted(versions))) for probe, versions in found.items()}


def _machine(name: str) -> Callable[[Subject], str]:
    return lambda one: str(_of(one.result.machine, name))


def _card(name: str, scale: float = 1.0, unit: str = "") -> Callable[[Subject], str]:
    def read(one: Subject) -> str:
        value = _of(one.facts, name) if one.facts else ""
        if isinstance(value, bool):
            return "on" if value else "off"
        return f"{value / scale:g} {unit}".strip() if isinstance(value, (int, float)) else str(value)

    return read


def _of(struct: Machine | CardFacts, name: str) -> object:
    value: object = getattr(struct, name)
    return "" if value is None else value


def _memory_limit(one: Subject) -> str:
    limit_bytes = one.result.memory_limit_bytes
    return f"{limit_bytes / 2**30:g} GiB" if limit_bytes else "none"


def _clocks(one: Subject) -> str:
    clocks = (_card("clock_sm_max_hertz", 1e6, "MHz")(one), _card("clock_memory_max_hertz", 1e6, "MHz")(one))
    return " and ".join(filter(None, clocks))


_TRAITS: Final = (
    _Trait("device", lambda one: one.result.machine.device, "CPU and card are compared"),
    _Trait(
        "extent", lambda one: one.result.extent, "a quick run has shorter windows and fewer batches than a full one"
    ),
    _Trait("TensorFlow", _machine("tensorflow"), _KERNELS),
    _Trait("Python", _machine("python"), "the host's part of a small step may be longer or shorter"),
    _Trait("CUDA", _machine("cuda"), _KERNELS, card_only=True),
    _Trait("cuDNN", _machine("cudnn"), "it chooses the convolutions, most of a training step", card_only=True),
    _Trait(
        "driver", _machine("driver"), "it sets clocks and power, and compiles what was not compiled", card_only=True
    ),
    _Trait("image", _machine("container"), "libraries and limits of the container may differ"),
    _Trait("hypervisor", _machine("hypervisor"), "a shared or virtual host slows small steps and the input"),
    _Trait("processor", _machine("cpu"), "small batches and the input pipeline measure the host"),
    _Trait("CPUs", _machine("cpus"), "the input pipeline, and on a CPU everything, grows with their number"),
    _Trait(
        "power limit",
        _card("power_limit_watts", 1, "W"),
        "the lower one slows a busy card down and spends less energy",
        card_only=True,
        same_model_only=True,
    ),
    _Trait("maximum clocks", _clocks, "throughput follows the clock", card_only=True, same_model_only=True),
    _Trait("ECC", _card("ecc_enabled"), "on some cards it costs memory and bandwidth", card_only=True),
    _Trait("MIG", _card("mig_enabled"), "a slice of a card is not a card", card_only=True),
    _Trait("memory limit", _memory_limit, "the largest batch, and with it the best throughput, may be lower"),
)
