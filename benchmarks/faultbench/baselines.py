"""What people have today, restated: alert rules over an exporter's metrics, and a z-score on probe values.

The alert rules are those commonly run on dcgm-exporter or nvidia_gpu_exporter; each holds when its condition
held at every scrape for as long as its ``for_s``. The z-score takes each probe value against the twenty
before it.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from agent.model.probe import ProbeRecord
from agent.model.snapshot import Snapshot
from agent.model.throttle import THROTTLE_REASONS

Scrape = tuple[float, Snapshot]
Values = Mapping[str, float]
NODE = "node"
RATE_S = 300.0
DOWN_S = 120.0
"""How long the driver or a card's series must be gone for the node's alert."""


class Alert(msgspec.Struct, frozen=True):
    """One alert rule over a card's values now and five minutes ago."""

    name: str
    holds: Callable[[Values, Values], bool]
    for_s: float = 0.0


def _above(key: str, limit: float) -> Callable[[Values, Values], bool]:
    return lambda now, _: now.get(key, 0.0) > limit


def _rose(key: str, by: float) -> Callable[[Values, Values], bool]:
    return lambda now, then: now.get(key, 0.0) - then.get(key, now.get(key, 0.0)) > by


def _throttled(now: Values, _: Values) -> bool:
    return any(now.get(f"throttle_active_{reason}", 0.0) >= 1 for reason in THROTTLE_REASONS if reason != "gpu_idle")


def _capped(now: Values, _: Values) -> bool:
    return now.get("throttle_active_sw_power_cap", 0.0) >= 1


def _underused(now: Values, _: Values) -> bool:
    return "utilization_ratio" in now and now["utilization_ratio"] < 0.3 and now.get("processes", 0.0) > 0


def _link_down(now: Values, _: Values) -> bool:
    return any(
        now.get(key, 0.0) < now.get(most, 0.0)
        for key, most in (("pcie_generation", "pcie_generation_max"), ("pcie_width_lanes", "pcie_width_max_lanes"))
        if key in now
    )


ALERTS = (
    Alert("temperature above 85 °C", _above("temperature_celsius", 85), 300),
    Alert("temperature above 90 °C", _above("temperature_celsius", 90), 60),
    Alert("a throttle reason other than idle", _throttled, 300),
    Alert("power violation", _capped, 600),
    Alert("an XID", _above("xid_last_code", 0)),
    Alert("double-bit ECC errors", _above("ecc_errors_uncorrected_volatile", 0)),
    Alert("double-bit ECC errors in the card's life", _above("ecc_errors_uncorrected_aggregate", 0)),
    Alert("row remap failed", _above("row_remap_failed", 0)),
    Alert("row remap pending", _above("row_remap_pending", 0)),
    Alert("page retirement pending", _above("retired_pages_pending", 0)),
    Alert("more than 60 retired pages", lambda now, _: _retired(now) > 60),
    Alert("PCIe replays", _rose("pcie_replays_total", 40)),
    Alert("NVLink errors", _rose("nvlink_errors_crc", 0)),
    Alert("PCIe link below its maximum", _link_down, 600),
    Alert("little used", _underused, 1800),
)


def _retired(now: Values) -> float:
    return now.get("retired_pages_single_bit", 0.0) + now.get("retired_pages_double_bit", 0.0)


def exporter_alerts(scrapes: Sequence[Scrape], cards: int) -> Iterator[tuple[float, str]]:
    """Yield time and subject of the first firing of each alert."""
    for gpu in range(cards):
        series = [(at_s, _values(snapshot, gpu)) for at_s, snapshot in scrapes]
        for alert in ALERTS:
            fired_s = _first(alert, series)
            if fired_s is not None:
                yield fired_s, str(gpu)
    since_s: float | None = None
    for at_s, snapshot in scrapes:
        down = not snapshot.nvml.up or len(_seen(snapshot)) < cards
        since_s = (at_s if since_s is None else since_s) if down else None
        if since_s is not None and at_s - since_s >= DOWN_S:
            yield at_s, NODE
            return


def _seen(snapshot: Snapshot) -> list[int]:
    """Return the cards that an exporter would show: those with values."""
    return [card.identity.index for card in snapshot.cards if card.values]


def _values(snapshot: Snapshot, gpu: int) -> Values:
    for card in snapshot.cards:
        if card.identity.index == gpu:
            return {**card.values, "processes": float(len(card.processes or ()))}
    return {}


def _first(alert: Alert, series: Sequence[tuple[float, Values]]) -> float | None:
    """Return when the alert fires first; None where it never does."""
    since_s: float | None = None
    oldest = 0
    for at_s, values in series:
        while series[oldest][0] < at_s - RATE_S:
            oldest += 1
        holds = bool(values) and alert.holds(values, series[oldest][1])
        since_s = (at_s if since_s is None else since_s) if holds else None
        if since_s is not None and at_s - since_s >= alert.for_s:
            return at_s
    return None


def score_alerts(records: Sequence[ProbeRecord], window: int = 20, limit: float = 3.0) -> Iterator[tuple[float, str]]:
    """Yield wall time and subject of each probe value beyond ``limit`` standard deviations of those before it."""
    past: dict[str, list[float]] = {}
    for record in sorted(records, key=lambda record: record.wall_s):
        if record.result.value is None:
            continue
        values = past.setdefault(record.uuid, [])
        before = values[-window:]
        if len(before) >= window // 2:
            spread = statistics.stdev(before)
            if spread > 0 and abs(record.result.value - statistics.fmean(before)) > limit * spread:
                yield record.wall_s, str(record.gpu)
        values.append(record.result.value)
