"""What must be known before two results are compared: everything about them that moves figures and differs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from agent.bench.marks import marks
from agent.bench.model import CardFacts, Machine
from agent.compare.model import Caution
from agent.compare.subjects import Subject
from agent.model.text import clean_label

UNKNOWN: Final = "unknown"
_OTHER_METHOD: Final = "the measurements differ, so the figures are not comparable"
_KERNELS: Final = "it brings the kernels of the networks, which may be faster or slower for that alone"


class _Trait(msgspec.Struct, frozen=True):
    """One fact, as text, empty where it is not known; and what another value may do to figures."""

    topic: str
    read: Callable[[Subject], str]
    effect: str
    card_only: bool = False
    same_model_only: bool = False
    several_cards_only: bool = False


def cautions(subjects: Sequence[Subject]) -> Iterator[Caution]:
    """Yield what concerns one subject alone, then in one line each what differs between them."""
    for one in subjects:
        yield from _alone(one)
    for trait in _TRAITS:
        for alike in _comparable(subjects, trait):
            told = [(one.label, clean_label(trait.read(one))) for one in alike]
            yield from _differing(trait.topic, told, trait.effect)
    versions = [(one.label, _versions(one)) for one in subjects]
    for probe in sorted({probe for _, own in versions for probe in own}):
        told = [(label, f"{probe} {own[probe]}") for label, own in versions if probe in own]
        yield from _differing("method version", told, _OTHER_METHOD)


def _failed(one: Subject) -> Iterator[Caution]:
    """Yield what could not be measured; that memory was too small for a batch is a finding, no failure."""
    owner = one.facts.id if one.facts else "cpu"
    made = [(step, record.result) for step in one.result.steps for record in step.records if record.uuid == owner]
    failed = [
        (step.name, answer)
        for step, answer in made
        if answer.status != "ok" and answer.reason.partition(":")[0] not in ("oom", "unsupported")
    ]
    if failed:
        name, first = failed[0]
        why = f"{first.status}/{clean_label(first.reason)}"
        detail = f"{len(failed)} of {len(made)}, the first in {clean_label(name)}: {why}"
        yield Caution((one.label,), "failed measurements", detail, "figures are missing for that alone")


def _comparable(subjects: Sequence[Subject], trait: _Trait) -> Iterator[Sequence[Subject]]:
    """Yield the groups within which a trait may be compared."""
    fitting = [one for one in subjects if _fits(one, trait)]
    if not trait.same_model_only:
        yield fitting
        return
    for model in dict.fromkeys(one.card for one in fitting):
        yield [one for one in fitting if one.card == model]


def _fits(one: Subject, trait: _Trait) -> bool:
    machine = one.result.machine
    if trait.several_cards_only and len(machine.cards) < 2:
        return False
    return machine.device == "gpu" or not (trait.card_only or trait.same_model_only)


def _differing(topic: str, told: Sequence[tuple[str, str]], effect: str) -> Iterator[Caution]:
    """Yield a caution that says whose value is which, where the values of ``told`` are not all the same."""
    holders: dict[str, list[str]] = {}
    for label, value in told:
        holders.setdefault(value, []).append(label)
    if len(holders) > 1:
        detail = " against ".join(f"{value or UNKNOWN} ({', '.join(labels)})" for value, labels in holders.items())
        yield Caution(tuple(label for label, _ in told), topic, detail, effect)


def _alone(one: Subject) -> Iterator[Caution]:
    about = (one.label,)
    if not one.result.complete:
        detail = f"{len(one.result.steps)} steps were carried out and some are missing"
        yield Caution(about, "incomplete", detail, "headline figures may stand for smaller batches than planned")
    yield from _failed(one)
    limit, default = (one.facts.power_limit_watts, one.facts.power_limit_default_watts) if one.facts else (None, None)
    if limit is not None and default is not None and limit < default:
        detail = f"{limit:g} W, by default {default:g} W"
        yield Caution(about, "power limit below default", detail, "a busy card is slower and spends less energy")
    disturbed = [at for at, point in one.best if marks(point.record)]
    if disturbed:
        detail = f"{len(disturbed)} of {len(one.best)} training figures were contended, slowed down or unsteady"
        yield Caution(about, "disturbed", detail, "they say more of the circumstances than of the card; each is marked")


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


def _shm(one: Subject) -> str:
    shm_bytes = one.result.machine.shm_bytes
    return "" if shm_bytes is None else f"{shm_bytes / 2**30:.3g} GiB"


def _links(one: Subject) -> str:
    """Return the kinds of links between the cards, each once."""
    return "; ".join(dict.fromkeys(line.partition(": ")[2] for line in one.result.machine.topology))


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
    _Trait("shared memory", _shm, "workers and cards hand data over through /dev/shm: too little ends or slows them"),
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
    _Trait("links between cards", _links, "scaling over several cards follows them", several_cards_only=True),
    _Trait("memory limit", _memory_limit, "the largest batch, and with it the best throughput, may be lower"),
)
