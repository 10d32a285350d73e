"""Processes, events, sample buffers and GPM."""

from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.support.fakenvml import write_scenario
from tests.unit.fakenvml.asking import CARD, answers, child, error

_COMPUTE = "nvmlDeviceGetComputeRunningProcesses_v3(card[0])"
_GRAPHICS = "nvmlDeviceGetGraphicsRunningProcesses_v3(card[0])"
_MPS = "nvmlDeviceGetMPSComputeRunningProcesses_v3(card[0])"


def _pids(processes: list[dict[str, Any]]) -> list[int]:
    return [process["pid"] for process in processes]


def test_processes_are_listed_by_kind_with_their_memory(tmp_path: Path) -> None:
    """Unknown memory is None in the binding; the asking process is `self`."""
    lines = """
    process 0 compute pid self memory 512MiB
    process 0 compute pid 4242 memory unknown
    process 0 graphics pid 77 memory 1
    """
    path = write_scenario(tmp_path / "x.scenario", CARD + lines)

    compute, graphics, mps, own = answers(path, _COMPUTE, _GRAPHICS, _MPS, "__import__('os').getpid()")

    assert [(entry["pid"], entry["usedGpuMemory"]) for entry in compute] == [(own, 512 << 20), (4242, None)]
    assert (_pids(graphics), mps) == ([77], [])


def test_processes_come_and_go_with_their_window(tmp_path: Path) -> None:
    """Before and after it they are not listed."""
    path = write_scenario(tmp_path / "x.scenario", CARD + "process 0 compute pid 5 during 50..100")

    listed = [_pids(answers(path, _COMPUTE, at_s=second)[0]) for second in (10, 60, 200)]

    assert listed == [[], [5], []]


def test_churning_processes_have_new_pids_each_second(tmp_path: Path) -> None:
    """500 of them, none seen a second before."""
    path = write_scenario(tmp_path / "x.scenario", CARD + "process 0 compute count 500 churn memory 1MiB")

    first, later = (set(_pids(answers(path, _COMPUTE, at_s=second)[0])) for second in (0, 10))

    assert len(first) == len(later) == 500
    assert not first & later


def test_process_lists_can_be_refused(tmp_path: Path) -> None:
    """A line about the function overrides the processes."""
    line = "process 0 compute\ncard 0 nvmlDeviceGetComputeRunningProcesses* = NO_PERMISSION"
    path = write_scenario(tmp_path / "x.scenario", CARD + line)

    assert answers(path, _COMPUTE) == [error("NO_PERMISSION")]


def test_an_event_reaches_who_registered_for_its_card(tmp_path: Path) -> None:
    """It is told with card and code; who registered for another card hears nothing."""
    lines = """
    cards 2
    card all nvmlDeviceGetSupportedEventTypes = nvmlEventTypeXidCriticalError
    event 1 at 100 every 10 xid 79
    """
    path = write_scenario(tmp_path / "x.scenario", lines)
    with child(path, at_s=90, speed=100.0) as process:
        process.ask("globals().update(both=register(*card), other=register(card[0]))")
        heard, unheard = process.ask("waited(both, 10000)"), process.ask("waited(other, 300)")

    assert (heard, unheard) == ([1, 79], error("TIMEOUT"))


def test_an_event_without_a_time_happens_when_its_file_takes_over(tmp_path: Path) -> None:
    """A test tells a running reader of an XID by replacing the file."""
    base = CARD + "card all nvmlDeviceGetSupportedEventTypes = 8\n"
    path = write_scenario(tmp_path / "x.scenario", base + "event 0 xid 13")
    with child(path) as process:
        process.ask("globals().update(events=register(*card))")
        before = process.ask("waited(events, 0)")
        write_scenario(path, base + "event 0 xid 31")
        found = [process.ask("waited(events, 0)") for _ in range(2)]

    assert before == error("TIMEOUT")
    assert found == [[0, 31], error("TIMEOUT")]


def test_repeated_events_are_all_told(tmp_path: Path) -> None:
    """Those that fell between two waits come one by one."""
    lines = "card 0 nvmlDeviceGetSupportedEventTypes = 8\nevent 0 at 1 every 1 xid 48"
    path = write_scenario(tmp_path / "x.scenario", CARD + lines)
    with child(path, speed=1000.0) as process:
        process.ask("globals().update(events=register(*card))")
        found = [process.ask("waited(events, 5000)") for _ in range(5)]

    assert found == [[0, 48]] * 5


def test_events_are_refused_where_the_card_has_none(tmp_path: Path) -> None:
    """Without a line about supported events nobody can register."""
    assert answers(write_scenario(tmp_path / "x.scenario", CARD), "register(card[0])") == [error("NOT_SUPPORTED")]


def test_samples_come_at_their_period_and_only_new_ones(tmp_path: Path) -> None:
    """The buffer holds its depth; a second read brings what is newer than the last time stamp."""
    line = "card 0 samples NVML_TOTAL_POWER_SAMPLES = ramp 0: 0 | 1000: 1000000 every 20ms depth 50"
    path = write_scenario(tmp_path / "x.scenario", CARD + line)
    with child(path, at_s=500) as process:
        buffer = process.ask("samples(card[0], NVML_TOTAL_POWER_SAMPLES)")
        last_us = buffer[-1][0]
        newer = process.ask(f"samples(card[0], NVML_TOTAL_POWER_SAMPLES, {last_us - 45_000})")
        future = process.ask(f"samples(card[0], NVML_TOTAL_POWER_SAMPLES, {last_us + 10_000_000})")
        unknown = process.ask("samples(card[0], NVML_MEMORY_CLK_SAMPLES)")

    gaps = {after[0] - before[0] for before, after in pairwise(buffer)}
    rises = {after[1] - before[1] for before, after in pairwise(buffer)}
    assert (len(buffer), gaps) == (50, {20_000})
    assert rises <= {19, 20, 21}
    assert [stamp for stamp, _ in newer][:2] == [last_us - 40_000, last_us - 20_000]
    assert future in ([], error("NOT_FOUND"))
    assert unknown == error("NOT_SUPPORTED")


def test_gpm_tells_the_mean_between_two_samples(tmp_path: Path) -> None:
    """A constant is itself, a metric without a line is not supported, a ramp gives its middle."""
    lines = """
    card 0 nvmlGpmQueryDeviceSupport = isSupportedDevice=1
    card 0 gpm NVML_GPM_METRIC_SM_UTIL = 62.5
    card 0 gpm NVML_GPM_METRIC_DRAM_BW_UTIL = steps 0: 0 | 0.001: 100 repeat 0.002
    """
    path = write_scenario(tmp_path / "x.scenario", CARD + lines)

    ((constant, halves, unsupported),) = answers(
        path, "gpm(card[0], NVML_GPM_METRIC_SM_UTIL, NVML_GPM_METRIC_DRAM_BW_UTIL, NVML_GPM_METRIC_FP64_UTIL)"
    )

    assert constant == 62.5
    assert 0 < halves < 100
    assert unsupported == error("NOT_SUPPORTED")


def test_gpm_is_refused_where_the_card_has_none(tmp_path: Path) -> None:
    """The support is told, and no sample can be taken."""
    line = "card 0 nvmlGpmQueryDeviceSupport = isSupportedDevice=0"
    path = write_scenario(tmp_path / "x.scenario", CARD + line)

    found = answers(path, "nvmlGpmQueryDeviceSupport(card[0]).isSupportedDevice", "gpm(card[0], 1)")

    assert found == [0, error("NOT_SUPPORTED")]
