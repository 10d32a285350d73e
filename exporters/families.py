"""What a snapshot says, as metric families; one function per part of it.

Names follow the Prometheus conventions (base units, ``_total`` on what only rises). What is unknown has no
sample: never 0, NaN or an older value. Text from outside passes ``clean_label``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
from typing import Final

from prometheus_client.core import Metric as Family

from agent.model.metrics import Metric, Sample
from agent.model.quantities import QUANTITIES
from agent.model.quantity import Quantity
from agent.model.snapshot import Card, CollectorHealth, Snapshot
from agent.model.text import clean_label
from agent.model.verdict import Finding
from agent.model.vocabulary import CARD_STATES, NODE_STATES, WORKLOAD_STATES

Labels = dict[str, str]
Section = Callable[[Snapshot], Iterable[Family]]


def gauge(name: str, text: str) -> Family:
    """Return an empty gauge family."""
    return Family(name, text, "gauge")


def counter(name: str, text: str) -> Family:
    """Return an empty counter family; ``name`` ends in ``_total``, as its samples do."""
    return Family(name.removesuffix("_total"), text, "counter")


def single(family: Family, value: float, labels: Labels | None = None) -> Family:
    """Return ``family`` with one more sample."""
    suffix = "_total" if family.type == "counter" else ""
    family.add_sample(family.name + suffix, labels or {}, value)
    return family


def info(name: str, text: str, labels: Labels) -> Family:
    """Return a family of one sample 1 whose labels are the information; ``name`` ends in ``_info``."""
    family = Family(name.removesuffix("_info"), text, "info")
    family.add_sample(name, {key: clean_label(value) for key, value in labels.items()}, 1)
    return family


def card_labels(gpu: int | None, uuid: str) -> Labels:
    """Return the two labels that every series about a card carries; both empty for the node itself."""
    return {"gpu": "" if gpu is None else str(gpu), "uuid": clean_label(uuid)}


def _by_metric(rows: Iterable[Quantity]) -> tuple[tuple[Quantity, ...], ...]:
    ordered = sorted(rows, key=lambda row: row.metric)
    return tuple(tuple(group) for _, group in groupby(ordered, key=lambda row: row.metric))


_QUANTITY_FAMILIES: Final = _by_metric(QUANTITIES)


def quantities(snapshot: Snapshot) -> Iterator[Family]:
    """Yield every reading of every card; rows that share a metric differ by their labels."""
    cards = [(card_labels(card.identity.index, card.identity.uuid), card.values) for card in snapshot.cards]
    for rows in _QUANTITY_FAMILIES:
        kind, name = rows[0].kind, rows[0].metric
        family = counter(name, rows[0].help) if kind == "counter" else gauge(name, rows[0].help)
        for row in rows:
            row_labels = dict(row.labels)
            for labels, values in cards:
                if row.key in values:
                    family.add_sample(name, labels | row_labels if row_labels else labels, values[row.key])
        if family.samples:
            yield family


def cards(snapshot: Snapshot) -> Iterator[Family]:
    """Yield who each card is and whether it answers."""
    identities = Family("heatsoak_gpu", "Who a card is and where it sits.", "info")
    lost = gauge("heatsoak_gpu_lost", "Whether the card is lost, needs a reset or hangs.")
    hung = gauge("heatsoak_gpu_hung_seconds", "How long a driver call about the card has been without an answer.")
    for card in snapshot.cards:
        labels = card_labels(card.identity.index, card.identity.uuid)
        identities.add_sample("heatsoak_gpu_info", labels | _identity(card, snapshot), 1)
        single(lost, bool(card.lost), labels)
        single(hung, card.hung_s, labels)
    if snapshot.cards:
        yield from (identities, lost, hung)


def allocations(snapshot: Snapshot) -> Iterator[Family]:
    """Yield who holds which card, as series of its own: a new pod must not break a card's other series."""
    family = Family("heatsoak_gpu_allocation", "Who holds a card: a pod's container or a Slurm job.", "info")
    indices = {card.identity.uuid: card.identity.index for card in snapshot.cards}
    for held in snapshot.allocations:
        who = {"namespace": held.namespace, "pod": held.pod, "container": held.container, "slurm_job": held.job}
        labels = {key: clean_label(value) for key, value in who.items()}
        family.add_sample("heatsoak_gpu_allocation_info", card_labels(indices.get(held.uuid), held.uuid) | labels, 1)
    if family.samples:
        yield family


def _identity(card: Card, snapshot: Snapshot) -> Labels:
    who = card.identity
    labels = {
        "name": who.name,
        "serial": who.serial,
        "pci_bus_id": who.pci_bus_id,
        "driver": who.driver,
        "vbios": who.vbios,
        "compute_capability": who.compute_capability,
        "node": snapshot.hostname,
        "rack": snapshot.rack,
        "position": snapshot.position,
    }
    return {key: clean_label(value) for key, value in labels.items()}


def node(snapshot: Snapshot) -> Iterator[Family]:
    """Yield where the machine stands."""
    labels = {"node": snapshot.hostname, "rack": snapshot.rack, "position": snapshot.position}
    yield info("heatsoak_node_info", "Name and place of this machine.", labels)


def nvml(snapshot: Snapshot) -> Iterator[Family]:
    """Yield how the driver and its reader child fare."""
    state = snapshot.nvml
    yield single(gauge("heatsoak_nvml_up", "Whether the NVIDIA driver answers."), state.up)
    if state.error:
        family = gauge("heatsoak_nvml_error", "Why the NVIDIA driver does not answer; 1 while it does not.")
        yield single(family, 1, {"error": clean_label(state.error)})
    if state.driver:
        labels = {"driver": state.driver, "nvml": state.nvml}
        text = "Versions of the driver and of NVML, whose first number is the CUDA version that the driver serves."
        yield info("heatsoak_nvml_info", text, labels)
    text = "How long the current driver call has been without an answer."
    yield single(gauge("heatsoak_nvml_hung_seconds", text), state.hung_s)
    text = "Reader children that were replaced."
    yield single(counter("heatsoak_nvml_reader_restarts_total", text), state.restarts)
    text = "Reader children that cannot be ended because a driver call does not return."
    yield single(gauge("heatsoak_nvml_readers_stuck", text), state.stuck_readers)
    dropped = counter(
        "heatsoak_nvml_values_dropped_total", "Driver values dropped because they are not believable, by quantity."
    )
    for key, count in sorted(state.dropped.items()):
        single(dropped, count, {"quantity": clean_label(key)})
    if dropped.samples:
        yield dropped


def health(snapshot: Snapshot) -> Iterator[Family]:
    """Yield how each collector fares, apart from what it collects."""
    attempts = counter("heatsoak_collector_attempts_total", "Times the collector ran.")
    success = gauge(
        "heatsoak_collector_success",
        "Whether the collector's last run succeeded; absent where the machine has nothing for it to collect.",
    )
    last = gauge("heatsoak_collector_last_success_timestamp_seconds", "When the collector last succeeded.")
    duration = gauge("heatsoak_collector_duration_seconds", "How long the collector's last run took.")
    errors = counter("heatsoak_collector_errors_total", "Failed runs of the collector, by reason.")
    for row in snapshot.health:
        _add_health(row, {"collector": clean_label(row.name)}, (attempts, success, last, duration, errors))
    yield from (family for family in (attempts, success, last, duration, errors) if family.samples)


def _add_health(row: CollectorHealth, labels: Labels, families: tuple[Family, ...]) -> None:
    attempts, success, last, duration, errors = families
    single(attempts, row.attempts, labels)
    if row.ok is not None:
        single(success, row.ok, labels)
    if row.last_success_wall_s is not None:
        single(last, row.last_success_wall_s, labels)
    if row.duration_s is not None:
        single(duration, row.duration_s, labels)
    for reason, count in sorted(row.errors.items()):
        single(errors, count, labels | {"reason": clean_label(reason)})


def loop(snapshot: Snapshot) -> Iterator[Family]:
    """Yield how the agent's own loop fares and how old the page is.

    The time the snapshot was taken is the freshness series: an age would be frozen into a page that is
    rendered once and served until the next tick.
    """
    state = snapshot.loop
    text = "When the readings on this page were taken."
    yield single(gauge("heatsoak_snapshot_timestamp_seconds", text), snapshot.taken_wall_s)
    yield single(counter("heatsoak_ticks_total", "Ticks since the agent started."), state.ticks)
    yield single(counter("heatsoak_tick_overruns_total", "Ticks that outran their period."), state.overruns)
    yield single(counter("heatsoak_clock_steps_total", "Steps of the machine's wall clock."), state.clock_steps)


def verdicts(snapshot: Snapshot) -> Iterator[Family]:
    """Yield every card's and the node's state as a state set, and every finding that holds."""
    card = gauge("heatsoak_card_state", "The card's state: 1 on the one that applies.")
    since = gauge("heatsoak_card_state_since_timestamp_seconds", "Since when the card has been in its state.")
    workload = gauge("heatsoak_workload_state", "State of the workload on the card: 1 on the one that applies.")
    active = gauge("heatsoak_verdict_active", "1 for each finding that holds; mode shadow does not count in the state.")
    began = gauge("heatsoak_verdict_since_timestamp_seconds", "Since when the finding has held.")
    numbers = gauge(
        "heatsoak_verdict_evidence",
        "The numbers and thresholds behind each finding; the unit ends the quantity's name.",
    )
    findings = (active, began, numbers)
    for verdict in snapshot.verdicts:
        labels = card_labels(verdict.gpu, verdict.uuid)
        _state_set(card, CARD_STATES, verdict.state, labels)
        _state_set(workload, WORKLOAD_STATES, verdict.workload, labels)
        single(since, verdict.since_wall_s, labels)
        _findings(findings, verdict.findings, labels)
    if snapshot.node_verdict is not None:
        state = gauge("heatsoak_node_state", "The node's state: 1 on the one that applies.")
        _state_set(state, NODE_STATES, snapshot.node_verdict.state, {})
        yield state
        text = "Since when the node has been in its state."
        family = gauge("heatsoak_node_state_since_timestamp_seconds", text)
        yield single(family, snapshot.node_verdict.since_wall_s)
        _findings(findings, snapshot.node_verdict.findings, card_labels(None, ""))
    yield from (family for family in (card, since, workload, *findings) if family.samples)


def _state_set(family: Family, states: Iterable[str], current: str, labels: Labels) -> None:
    for state in states:
        single(family, state == current, labels | {"state": state})


def _findings(families: tuple[Family, Family, Family], findings: Iterable[Finding], labels: Labels) -> None:
    active, began, numbers = families
    for finding in findings:
        details = {
            "rule": finding.rule,
            "cause": clean_label(finding.cause),
            "state": finding.state,
            "mode": "shadow" if finding.shadow else "on",
        }
        single(active, 1, labels | details)
        single(began, finding.since_wall_s, labels | details)
        for quantity, value in finding.evidence.items():
            single(numbers, value, labels | {"rule": finding.rule, "quantity": clean_label(quantity)})


def defined(samples: Iterable[Sample], definitions: Mapping[str, Metric]) -> Iterator[Family]:
    """Yield samples whose metrics collectors have defined, in the order of the definitions.

    Raises:
        LookupError: a sample has no definition, or other labels than its definition; raised after the
            families of all others were yielded.
    """
    families: dict[str, Family] = {}
    wrong: list[str] = []
    for sample in samples:
        metric = definitions.get(sample.name)
        if metric is None or len(metric.labels) != len(sample.labels):
            wrong.append(clean_label(sample.name))
            continue
        family = families.get(sample.name)
        if family is None:
            make = counter if metric.kind == "counter" else gauge
            family = families[sample.name] = make(metric.name, metric.help)
        values = (clean_label(value) for value in sample.labels)
        family.add_sample(sample.name, dict(zip(metric.labels, values, strict=True)), sample.value)
    yield from (families[name] for name in definitions if name in families)
    if wrong:
        raise LookupError(f"samples without a matching definition: {', '.join(sorted(set(wrong)))}")
