"""What the status page shows, as ready text: made from a snapshot, laid out by the template."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from typing import Final

import msgspec

from agent.model.probe import ProbeRecord, ProbeResult
from agent.model.reference import series_of
from agent.model.snapshot import Card, Snapshot
from agent.model.text import clean_label
from agent.model.throttle import LIMITING_REASONS, THROTTLE_REASONS
from agent.model.verdict import CardVerdict, Finding, NodeVerdict
from agent.model.vocabulary import PROBE_REASONS
from exporters import humanise
from exporters.board import SampleKey
from exporters.words import (
    CARD_WORDS,
    NODE_WORDS,
    NOT_JUDGED,
    PROBE_WORDS,
    REASON_WORDS,
    TONES,
    WORKLOAD_WORDS,
    WORST_FIRST,
)

_TIMES: Final = "\u00d7"


class Tile(msgspec.Struct, frozen=True):
    """One reading: a label, a number with its unit, what it is compared with, and how much of that it is."""

    label: str
    value: str
    unit: str = ""
    detail: str = ""
    share: float | None = None
    tone: str = ""


class Reason(msgspec.Struct, frozen=True):
    """Why a card's clocks are held down now; ``limiting`` where that slows down work."""

    word: str
    limiting: bool


class ProbeRow(msgspec.Struct, frozen=True):
    """The last run of one probe."""

    name: str
    detail: str
    value: str
    unit: str
    note: str
    age: str
    tone: str
    spark: tuple[tuple[float, float], ...]
    """Points of a line of the latest values, in a box of 100 by 24; empty below two values."""


class CardView(msgspec.Struct, frozen=True):
    """One card."""

    index: int
    title: str
    model: str
    place: str
    state: str
    word: str
    tone: str
    since: str
    summary: str
    next_action: str
    workload: str
    further: tuple[str, ...]
    tiles: tuple[Tile, ...]
    reasons: tuple[Reason, ...]
    probes: tuple[ProbeRow, ...]


class Banner(msgspec.Struct, frozen=True):
    """Something about the whole node that goes above everything else; ``code`` is the driver's own word for it."""

    word: str
    tone: str
    since: str
    lines: tuple[str, ...]
    next_action: str
    code: str = ""


class Count(msgspec.Struct, frozen=True):
    """How many cards are in one state."""

    number: int
    word: str
    tone: str


class PageView(msgspec.Struct, frozen=True):
    """The whole page."""

    node: str
    place: str
    taken: str
    verdict: str
    tone: str
    counts: tuple[Count, ...]
    banners: tuple[Banner, ...]
    cards: tuple[CardView, ...]
    """The worst first."""
    no_cards: str
    cpu_probes: tuple[ProbeRow, ...]
    host: tuple[Tile, ...]
    agent: tuple[Tile, ...]
    trouble: tuple[str, ...]
    version: str
    recording: str
    """Name of the recording that is played, empty where the cards are real."""


def page_view(snapshot: Snapshot, rates: Mapping[SampleKey, float], *, version: str, fresh: bool) -> PageView:
    """Return what the page shows of ``snapshot``; of one that is not ``fresh``, no readings."""
    verdicts = {verdict.uuid: verdict for verdict in snapshot.verdicts}
    cards = [_card(card, verdicts.get(card.identity.uuid), snapshot, fresh=fresh) for card in snapshot.cards]
    cards.sort(key=lambda card: (WORST_FIRST.index(card.state), not card.workload))
    banners = tuple(_banners(snapshot, fresh=fresh))
    counts = tuple(_counts(cards)) if fresh else ()
    return PageView(
        node=clean_label(snapshot.hostname) or "this machine",
        place=" · ".join(clean_label(part) for part in (snapshot.rack, snapshot.position) if part),
        taken=_clock_time(snapshot.taken_wall_s),
        verdict=_headline(cards, banners),
        tone=banners[0].tone if banners else (cards[0].tone if cards else "quiet"),
        counts=counts,
        banners=banners,
        cards=tuple(cards),
        no_cards="" if cards or banners else _why_no_cards(snapshot),
        cpu_probes=tuple(_probe_rows(snapshot, "cpu")),
        host=tuple(_host_tiles(snapshot, rates)) if fresh else (),
        agent=tuple(_agent_tiles(snapshot)),
        trouble=tuple(_trouble(snapshot)),
        version=version,
        recording=clean_label(snapshot.nvml.recording),
    )


def _headline(cards: list[CardView], banners: tuple[Banner, ...]) -> str:
    if banners:
        return banners[0].word
    if not cards:
        return "No NVIDIA card"
    bad = [card for card in cards if card.tone != "good"]
    if not bad:
        return "All cards OK" if len(cards) > 1 else "Card OK"
    return f"{bad[0].title} {bad[0].word.lower()}" + (f", {len(bad) - 1} more to look at" if len(bad) > 1 else "")


def _counts(cards: list[CardView]) -> Iterator[Count]:
    for state in WORST_FIRST:
        number = sum(card.state == state for card in cards)
        if number:
            yield Count(number, CARD_WORDS[state], TONES[state])


def _why_no_cards(snapshot: Snapshot) -> str:
    if snapshot.nvml.error:
        return clean_label(snapshot.nvml.advice or snapshot.nvml.error, 300)
    return "No NVIDIA card is in this machine." if snapshot.nvml.up else "The NVIDIA driver was not asked yet."


def _banners(snapshot: Snapshot, *, fresh: bool) -> Iterator[Banner]:
    if not fresh:
        since = f"since {_clock_time(snapshot.taken_wall_s)}"
        line = "The agent no longer takes readings, so none are shown: what was last seen may be wrong by now."
        yield Banner("The agent stands still", "bad", since, (line,), "Look at its log, then restart it.")
    node = snapshot.node_verdict
    if node is not None and node.state != "ok":
        yield _node_banner(node, snapshot)


def _node_banner(node: NodeVerdict, snapshot: Snapshot) -> Banner:
    findings = [finding for finding in node.findings if finding.state == node.state and not finding.shadow]
    lines = [clean_label(finding.summary, 300) for finding in findings]
    if node.state == "nvml_down" and snapshot.nvml.advice:
        lines.append(clean_label(snapshot.nvml.advice, 300))
    action = clean_label(findings[0].next_action, 300) if findings else ""
    tone = "warn" if node.state in ("probe_environment_broken", "host_slow") else "bad"
    since = f"for {humanise.span(snapshot.taken_wall_s - node.since_wall_s)}"
    code = clean_label(snapshot.nvml.error) if node.state == "nvml_down" else ""
    return Banner(NODE_WORDS.get(node.state, node.state), tone, since, tuple(lines), action, code)


def _card(card: Card, verdict: CardVerdict | None, snapshot: Snapshot, *, fresh: bool) -> CardView:
    who = card.identity
    state = verdict.state if verdict else NOT_JUDGED
    findings = [finding for finding in verdict.findings if not finding.shadow] if verdict else []
    main = next((finding for finding in findings if finding.state == state), None)
    workload = verdict.workload if verdict else "none"
    place = [who.pci_bus_id, f"S/N {who.serial}" if who.serial else "", who.uuid]
    return CardView(
        index=who.index,
        title=f"GPU {who.index}",
        model=clean_label(who.name).removeprefix("NVIDIA "),
        place=" · ".join(clean_label(part) for part in place if part),
        state=state,
        word=CARD_WORDS[state] if fresh else f"Was {CARD_WORDS[state]}",
        tone=TONES[state] if fresh else "quiet",
        since=f"for {humanise.span(snapshot.taken_wall_s - verdict.since_wall_s)}" if verdict else "",
        summary=clean_label(main.summary, 300) if main else clean_label(card.lost),
        next_action=clean_label(main.next_action, 300) if main else "",
        workload=WORKLOAD_WORDS.get(workload, "") if fresh else "",
        further=tuple(_further(findings, main)),
        tiles=tuple(_tiles(card.values)) if fresh else (),
        reasons=tuple(_reasons(card.values)) if fresh else (),
        probes=tuple(_probe_rows(snapshot, who.uuid)),
    )


def _further(findings: list[Finding], main: Finding | None) -> Iterator[str]:
    for finding in findings:
        if finding is not main:
            yield clean_label(f"{finding.summary} {finding.next_action}", 300)


def _tiles(values: Mapping[str, float]) -> Iterator[Tile]:
    if "utilization_ratio" in values:
        share = values["utilization_ratio"]
        yield Tile("Utilisation", humanise.percent(share), "%", share=share)
    if "temperature_celsius" in values:
        yield _temperature(values)
    if "power_watts" in values:
        yield _compared("Power", values["power_watts"], values.get("power_limit_enforced_watts"), "W")
    if "clock_sm_hertz" in values:
        clock, most = values["clock_sm_hertz"] / 1e6, values.get("clock_max_sm_hertz")
        yield _compared("SM clock", clock, most / 1e6 if most else None, "MHz")
    if "memory_used_bytes" in values:
        yield _memory(values["memory_used_bytes"], values.get("memory_total_bytes"))


def _temperature(values: Mapping[str, float]) -> Tile:
    degrees = values["temperature_celsius"]
    slowdown = values.get("temperature_threshold_slowdown_celsius")
    detail = f"slows at {slowdown:.0f}" if slowdown else ""
    hot = slowdown is not None and degrees >= slowdown - 3
    return Tile("Temp", f"{degrees:.0f}", "°C", detail, degrees / slowdown if slowdown else None, "warn" * hot)


def _compared(label: str, value: float, most: float | None, unit: str) -> Tile:
    if not most:
        return Tile(label, f"{value:,.0f}", unit)
    return Tile(label, f"{value:,.0f}", "", f"of {most:,.0f} {unit}", value / most)


def _memory(used_bytes: float, total_bytes: float | None) -> Tile:
    if not total_bytes:
        return Tile("Memory", *humanise.size(used_bytes))
    used, total, unit = humanise.share_of_size(used_bytes, total_bytes)
    return Tile("Memory", used, "", f"of {total} {unit}", used_bytes / total_bytes)


def _reasons(values: Mapping[str, float]) -> Iterator[Reason]:
    for reason in THROTTLE_REASONS:
        if values.get(f"throttle_active_{reason}") == 1:
            yield Reason(REASON_WORDS.get(reason, reason), reason in LIMITING_REASONS)


def _probe_rows(snapshot: Snapshot, uuid: str) -> Iterator[ProbeRow]:
    for record in snapshot.probes:
        if record.uuid == uuid:
            yield _probe_row(record, snapshot)


def _probe_row(record: ProbeRecord, snapshot: Snapshot) -> ProbeRow:
    result = record.result
    history = snapshot.probe_history.get((record.uuid, series_of(result)), ())
    value, unit, note, tone = "", "", "", ""
    if result.value is not None:
        value, unit = humanise.quantity(result.value, clean_label(result.unit))
    else:
        note = _what_happened(result)
        tone = "quiet" if result.status in ("skipped", "aborted") else "bad"
    detail = [result.variant, result.dtype, result.shape.replace("x", _TIMES)]
    return ProbeRow(
        name=PROBE_WORDS[result.probe],
        detail=" · ".join(clean_label(part) for part in detail if part),
        value=value,
        unit=unit,
        note=note,
        age=f"{humanise.span(snapshot.taken_wall_s - record.wall_s)} ago",
        tone=tone,
        spark=_spark(history),
    )


def _what_happened(result: ProbeResult) -> str:
    """Return why there is no value, as ``skipped: a process that is not ours uses the card``."""
    reason, _, value = result.reason.partition(":")
    meaning = PROBE_REASONS[result.status].get(reason, reason)
    details = f"{meaning.partition(';')[0]}: {value}" if value else meaning
    status = result.status.replace("_", " ")
    return clean_label(f"{status}: {details}" if details else status, 200)


def _spark(values: tuple[float, ...]) -> tuple[tuple[float, float], ...]:
    """Return a line that leaves small noise flat: the box is never less than 4 % of the largest value high."""
    if len(values) < 2:
        return ()
    top, bottom = max(values), min(values)
    room = max(top - bottom, 0.04 * abs(top)) or 1.0
    floor = (top + bottom - room) / 2
    step = 96 / (len(values) - 1)
    return tuple((2 + step * at, 22 - 20 * (value - floor) / room) for at, value in enumerate(values))


def _host_tiles(snapshot: Snapshot, rates: Mapping[SampleKey, float]) -> Iterator[Tile]:
    now = {(sample.name, sample.labels): sample.value for sample in snapshot.host}
    cpus = now.get(("heatsoak_host_cpus", ()))
    idle = _sum(rates, "heatsoak_host_cpu_seconds_total", "idle", "iowait")
    every = _sum(rates, "heatsoak_host_cpu_seconds_total")
    if every and idle is not None:
        share = 1 - idle / every
        yield Tile("CPU", humanise.percent(share), "%", f"of {cpus:.0f} CPUs" if cpus else "", share)
    load = now.get(("heatsoak_host_load1", ()))
    if load is not None:
        yield Tile("Load", humanise.number(load), "", "1 min")
    total = now.get(("heatsoak_host_memory_total_bytes", ()))
    available = now.get(("heatsoak_host_memory_available_bytes", ()))
    if total and available is not None:
        yield _memory(total - available, total)
    for resource, word in (("cpu", "CPU"), ("io", "I/O"), ("memory", "Memory")):
        waited = rates.get(("heatsoak_host_pressure_seconds_total", (resource, "some")))
        if waited is not None:
            yield Tile(f"{word} pressure", f"{waited * 100:.1f}", "%", "", waited)
    for label, name in (
        ("Disk read", "heatsoak_host_disk_read_bytes_total"),
        ("Disk write", "heatsoak_host_disk_written_bytes_total"),
        ("Network in", "heatsoak_host_network_receive_bytes_total"),
        ("Network out", "heatsoak_host_network_transmit_bytes_total"),
    ):
        rate = _sum(rates, name)
        if rate is not None:
            yield Tile(label, *humanise.with_prefix(rate, "B/s"))


def _sum(rates: Mapping[SampleKey, float], name: str, *first_labels: str) -> float | None:
    found = [
        rate
        for (metric, labels), rate in rates.items()
        if metric == name and (not first_labels or labels[0] in first_labels)
    ]
    return sum(found) if found else None


def _agent_tiles(snapshot: Snapshot) -> Iterator[Tile]:
    loop, nvml = snapshot.loop, snapshot.nvml
    yield Tile("Ticks", f"{loop.ticks:,}", "", f"{loop.overruns:,} late" if loop.overruns else "")
    if nvml.driver:
        yield Tile("Driver", clean_label(nvml.driver), "", f"NVML {clean_label(nvml.nvml)}" if nvml.nvml else "")
    yield Tile("Reader restarts", f"{nvml.restarts:,}")
    dropped = sum(nvml.dropped.values())
    if dropped:
        yield Tile("Values dropped", f"{dropped:,}")


def _trouble(snapshot: Snapshot) -> Iterator[str]:
    normal = snapshot.node_verdict is not None and snapshot.node_verdict.state == "ok" and not snapshot.cards
    for row in snapshot.health:
        if row.ok is False and not (normal and row.name == "nvml"):  # a node without a card is a normal node
            last = row.last_success_wall_s
            since = f", last well {humanise.span(snapshot.taken_wall_s - last)} ago" if last else ""
            yield f"collector {clean_label(row.name)} fails{since}"
    if snapshot.nvml.hung_s:
        yield f"a driver call has not returned for {humanise.span(snapshot.nvml.hung_s)}"
    if snapshot.nvml.stuck_readers:
        yield f"{snapshot.nvml.stuck_readers} reader children cannot be ended"


def _clock_time(wall_s: float) -> str:
    return datetime.fromtimestamp(wall_s, tz=timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
