"""What of a probe becomes which series."""

import msgspec

from agent.model.probe import PROBE_KINDS
from exporters.probe_families import figure_labels, probes
from tests.support import snapshots
from tests.unit.exporters.test_families import series_of

LABELS = (
    ("device", "gpu"),
    ("gpu", "0"),
    ("uuid", snapshots.uuid_of(0)),
    ("variant", ""),
    ("dtype", "bf16"),
    ("shape", "8192x8192x8192"),
    ("mode", "graph"),
)
NAMED = (("probe", "matmul"), *LABELS)
RUN = (*NAMED[:4], ("dtype", "bf16"), ("mode", "graph"))


def test_a_good_probe_is_told_with_its_circumstances() -> None:
    """Value, spread, times, memory and what the card did meanwhile."""
    found = series_of(probes(snapshots.idle_node()))
    assert found[PROBE_KINDS["matmul"].metric, LABELS] == 659.4e12
    assert found["heatsoak_probe_success", RUN] == 1
    assert found["heatsoak_probe_judged", NAMED] == 1
    assert found["heatsoak_probe_last_good_timestamp_seconds", NAMED] == snapshots.TAKEN_WALL_S - 840
    assert found["heatsoak_probe_step_seconds", NAMED] == 0.00167
    assert round(found["heatsoak_probe_step_mad_ratio", NAMED], 6) == round(0.00005 / 0.0167, 6)
    assert found["heatsoak_probe_allocator_peak_bytes", NAMED] == 402_653_184
    assert found["heatsoak_probe_card_power_watts", NAMED] == 688.0
    assert found["heatsoak_probe_card_throttle_ratio", (*NAMED, ("reason", "sw_power_cap"))] == 0.94
    (info,) = (dict(labels) for name, labels in found if name == "heatsoak_probe_info" and NAMED[0] in labels)
    assert info["tensorflow"] == "2.21.0"
    assert info["method_version"] == "1"


def test_a_failed_probe_has_no_value() -> None:
    """Missing is never healthy: success is 0, there is no figure."""
    failed = snapshots.probe_record(0, "matmul", None, "flop/s", status="timeout", reason="deadline")
    found = series_of(probes(snapshots.snapshot(probes=(failed,))))
    assert found == {
        ("heatsoak_probe_success", RUN): 0,
        ("heatsoak_probe_last_run_timestamp_seconds", RUN): failed.wall_s,
    }


def test_a_failure_leaves_the_last_good_figure_with_its_time() -> None:
    """The newest run decides about success, whatever the order and the shape it got to; the figure ages."""
    good = snapshots.probe_record(0, "matmul", 659.4e12, "flop/s", age_s=7200)
    failed = snapshots.probe_record(0, "matmul", None, "flop/s", status="error", reason="oom", shape="", age_s=60)
    for order in ((good, failed), (failed, good)):
        found = series_of(probes(snapshots.snapshot(probes=order)))
        assert found["heatsoak_probe_success", RUN] == 0
        assert found["heatsoak_probe_last_run_timestamp_seconds", RUN] == failed.wall_s
        assert found["heatsoak_probe_last_good_timestamp_seconds", NAMED] == good.wall_s
        assert found[PROBE_KINDS["matmul"].metric, LABELS] == 659.4e12


def test_a_skipped_probe_neither_succeeded_nor_failed() -> None:
    """Skipped and failed are different things."""
    skipped = snapshots.probe_record(0, "matmul", None, "flop/s", status="skipped", reason="busy")
    assert not list(probes(snapshots.snapshot(probes=(skipped,))))


def test_a_probe_on_the_cpu_is_labelled_so() -> None:
    """No series of the CPU can be taken for a card's."""
    record = snapshots.cpu_only_node().probes[0]
    labels = figure_labels(record)
    assert (labels["device"], labels["gpu"], labels["uuid"]) == ("cpu", "", "cpu")
    assert "heatsoak_probe_card_power_watts" not in {name for name, _ in series_of(probes(snapshots.cpu_only_node()))}


def test_a_step_of_unknown_length_is_absent() -> None:
    """A timing of no steps and a median of 0 divide nothing."""
    record = snapshots.idle_node().probes[0]
    assert record.result.timing is not None
    timing = msgspec.structs.replace(record.result.timing, inner=0, median_s=0.0)
    result = msgspec.structs.replace(record.result, timing=timing)
    odd = msgspec.structs.replace(record, result=result)
    names = {name for name, _ in series_of(probes(snapshots.snapshot(probes=(odd,))))}
    assert not names & {"heatsoak_probe_step_seconds", "heatsoak_probe_step_mad_ratio"}


def test_without_probes_there_is_nothing() -> None:
    """No family is given empty."""
    assert not list(probes(snapshots.snapshot()))
