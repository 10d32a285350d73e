"""What the probes measured, as metric families.

A figure is told apart by device (gpu or cpu), gpu, uuid, variant, dtype, shape and mode, and stays until the
next good run. How the last run went is told without variant and shape, which a run that failed may not know.
"""

from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client.core import Metric as Family

from agent.model.probe import PROBE_KINDS, ProbeRecord
from agent.model.snapshot import Snapshot
from agent.model.text import clean_label
from exporters.families import Labels, card_labels, gauge, single

Reading = Callable[[ProbeRecord], float | None]


def _step(record: ProbeRecord) -> float | None:
    timing = record.result.timing
    return timing.median_s / timing.inner if timing and timing.inner else None


def _spread(record: ProbeRecord) -> float | None:
    timing = record.result.timing
    return timing.mad_s / timing.median_s if timing and timing.median_s else None


def _timing(name: str) -> Reading:
    return lambda record: getattr(record.result.timing, name) if record.result.timing else None


def _card(name: str) -> Reading:
    return lambda record: getattr(record.attribution, name) if record.attribution else None


_READINGS: Final[tuple[tuple[str, str, Reading], ...]] = (
    ("last_good_timestamp_seconds", "When the last good run ended.", lambda record: record.wall_s),
    ("judged", "Whether the value may be compared with a reference.", lambda record: record.judged),
    ("step_seconds", "Median time of one step.", _step),
    ("step_mad_ratio", "Median absolute deviation of the repeats over their median.", _spread),
    ("first_call_seconds", "Time of the first call, compilation included.", _timing("first_call_s")),
    ("warmup_seconds", "Time spent warming up before the timed repeats.", _timing("warmup_s")),
    ("host_share_ratio", "Share of a step spent on the host before the device works.", _timing("host_share")),
    ("elapsed_seconds", "Time from the child's start to the result.", lambda record: record.elapsed_s or None),
    ("cpu_seconds", "CPU time the child used.", lambda record: record.cpu_s),
    ("allocator_peak_bytes", "Most device memory the run held.", lambda record: record.result.allocator_peak_bytes),
    ("card_sm_clock_hertz", "Median SM clock during the timed window.", _card("sm_clock_median_hertz")),
    ("card_memory_clock_hertz", "Median memory clock during the timed window.", _card("memory_clock_median_hertz")),
    ("card_temperature_celsius", "Highest temperature during the timed window.", _card("temperature_max_celsius")),
    ("card_power_watts", "Mean power during the timed window.", _card("power_mean_watts")),
    ("card_power_limit_watts", "Power limit during the timed window.", _card("power_limit_watts")),
    ("card_contended", "Whether another process used the card during the timed window.", _card("contended")),
)


def figure_labels(record: ProbeRecord) -> Labels:
    """Return the labels that tell one figure from every other of its probe."""
    result = record.result
    details = {"variant": result.variant, "dtype": result.dtype, "shape": result.shape, "mode": result.mode}
    return _device_labels(record) | {key: clean_label(value) for key, value in details.items()}


def _run_labels(record: ProbeRecord) -> Labels:
    result = record.result
    labels = {"probe": result.probe} | _device_labels(record)
    return labels | {"dtype": clean_label(result.dtype), "mode": clean_label(result.mode)}


def _device_labels(record: ProbeRecord) -> Labels:
    return {"device": "cpu" if record.gpu is None else "gpu"} | card_labels(record.gpu, record.uuid)


def probes(snapshot: Snapshot) -> Iterator[Family]:
    """Yield how the last runs went, and the last good value of every figure with its circumstances."""
    yield from _runs(snapshot)
    figures = [(record, figure_labels(record)) for record in snapshot.probes if record.result.status == "ok"]
    for kind in PROBE_KINDS.values():
        family = gauge(kind.metric, kind.help)
        for record, labels in figures:
            if record.result.probe == kind.name and record.result.value is not None:
                single(family, record.result.value, labels)
        if family.samples:
            yield family
    named = [(record, {"probe": record.result.probe} | labels) for record, labels in figures]
    for suffix, text, reading in _READINGS:
        family = gauge(f"heatsoak_probe_{suffix}", text)
        for record, labels in named:
            value = reading(record)
            if value is not None:
                single(family, value, labels)
        if family.samples:
            yield family
    yield from _throttle_shares(named)
    yield from _environments(named)


def _runs(snapshot: Snapshot) -> Iterator[Family]:
    """Yield success and time of the newest run of each probe and data type; one that was skipped is none."""
    newest: dict[tuple[str, ...], ProbeRecord] = {}
    for record in sorted(snapshot.probes, key=lambda record: record.wall_s):
        if record.result.status != "skipped":
            newest[tuple(_run_labels(record).values())] = record
    success = gauge("heatsoak_probe_success", "Whether the last run succeeded.")
    last = gauge("heatsoak_probe_last_run_timestamp_seconds", "When the last run ended.")
    for record in newest.values():
        labels = _run_labels(record)
        single(success, record.result.status == "ok", labels)
        single(last, record.wall_s, labels)
    yield from (family for family in (success, last) if family.samples)


def _throttle_shares(named: list[tuple[ProbeRecord, Labels]]) -> Iterator[Family]:
    family = gauge("heatsoak_probe_card_throttle_ratio", "Share of the timed window throttled, by reason.")
    for record, labels in named:
        shares = record.attribution.throttle_share if record.attribution else {}
        for reason, share in sorted(shares.items()):
            single(family, share, labels | {"reason": clean_label(reason)})
    if family.samples:
        yield family


def _environments(named: list[tuple[ProbeRecord, Labels]]) -> Iterator[Family]:
    family = Family("heatsoak_probe", "The software the last run was made with.", "info")
    for record, labels in named:
        environment = record.environment
        versions = {
            "method_version": str(record.result.method_version),
            "python": environment.python,
            "tensorflow": environment.tensorflow,
            "cuda": environment.cuda,
            "cudnn": environment.cudnn,
            "driver": environment.driver,
        }
        details = {key: clean_label(value) for key, value in versions.items()}
        family.add_sample("heatsoak_probe_info", labels | details, 1)
    if family.samples:
        yield family
