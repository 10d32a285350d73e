"""Counters that only rise, present from the start, with bounded labels."""

import msgspec

from agent.model.metrics import Sample
from agent.model.vocabulary import PROBE_REASONS
from agent.probes.counts import METRICS, Counts
from agent.probes.plan import DAY_S


def samples(counts: Counts) -> tuple[Sample, ...]:
    """Return what a scrape would carry."""
    return counts.samples(budget=0.01, next_wall_s=1.7e9, running=False, environment_broken=False)


def value(counts: Counts, name: str, *labels: str) -> float | None:
    """Return one value, None where it is absent."""
    return next((s.value for s in samples(counts) if s.name == name and s.labels == labels), None)


def test_every_result_exists_at_zero_before_the_first() -> None:
    """So that a first failure is a rise."""
    counts = Counts(scheduled=True)
    for status, reasons in PROBE_REASONS.items():
        for reason in reasons or ("",):
            assert value(counts, "heatsoak_probe_runs_total", "matmul", status, reason) == 0.0


def test_nothing_is_promised_where_no_probe_is_scheduled() -> None:
    """A node whose probes are off has no series of their results."""
    assert not [s for s in samples(Counts(scheduled=False)) if s.name == "heatsoak_probe_runs_total"]


def test_values_after_a_colon_make_no_series() -> None:
    """Labels come from the closed list only."""
    counts = Counts(scheduled=True)
    before = len(samples(counts))
    for number in range(100):
        counts.ran("matmul", "error", f"oom:{number}")
    assert value(counts, "heatsoak_probe_runs_total", "matmul", "error", "oom") == 100.0
    assert len(samples(counts)) == before


def test_card_time_is_summed_per_card_and_per_day() -> None:
    """The counter only rises; the budget looks at the last 24 hours."""
    counts = Counts(scheduled=True)
    counts.see_card(0, "GPU-a")
    assert value(counts, "heatsoak_probe_busy_seconds_total", "0", "GPU-a") == 0.0
    counts.worked(0, "GPU-a", 4.0, now_s=0.0)
    counts.worked(0, "GPU-a", 5.0, now_s=DAY_S / 2)
    assert counts.busy_in_day_s("GPU-a", DAY_S / 2) == 9.0
    assert counts.busy_in_day_s("GPU-a", DAY_S + 1) == 5.0
    assert counts.busy_in_day_s("GPU-b", DAY_S) == 0.0
    assert value(counts, "heatsoak_probe_busy_seconds_total", "0", "GPU-a") == 9.0


def test_child_cpu_time_is_summed() -> None:
    """Children cost the host too."""
    counts = Counts(scheduled=True)
    counts.used_cpu(3.0)
    counts.used_cpu(4.5)
    assert value(counts, "heatsoak_probe_child_cpu_seconds_total") == 7.5


def test_unscheduled_next_run_is_absent() -> None:
    """Unknown is not 0."""
    found = Counts(scheduled=False).samples(budget=0.01, next_wall_s=None, running=True, environment_broken=True)
    assert "heatsoak_probe_next_run_timestamp_seconds" not in {s.name for s in found}


def test_every_sample_fits_its_metric() -> None:
    """Names are declared, label counts agree."""
    counts = Counts(scheduled=True)
    counts.see_card(0, "GPU-a")
    declared = {metric.name: metric for metric in METRICS}
    for sample in samples(counts):
        assert len(sample.labels) == len(declared[sample.name].labels)
    assert all(metric.kind == ("counter" if metric.name.endswith("_total") else "gauge") for metric in METRICS)
    assert msgspec.json.encode(samples(counts))
