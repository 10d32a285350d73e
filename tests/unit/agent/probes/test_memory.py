"""How much memory is left for a child, and what proves that the kernel killed one."""

import json
from pathlib import Path

import pytest

from agent.model.probe import PROBE_KINDS, ProbeRequest
from agent.probes.memory import NEEDED_MIB, HostRoots, available_bytes, needed_mib, oom_kills
from agent.probes.plan import plans

GIB = 1 << 30
MEASURED = Path(__file__).parents[4] / "benchmarks" / "results" / "h200"
MARGIN = 1.15


def roots(tmp_path: Path, cgroup_lines: str, files: dict[str, str], available_kib: int = 8 << 20) -> HostRoots:
    """Make the kernel's files."""
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text(f"MemTotal: 99999 kB\nMemAvailable:   {available_kib} kB\n")
    (tmp_path / "proc/vmstat").write_text("nr_free_pages 1\noom_kill 3\n")
    (tmp_path / "proc/self/cgroup").write_text(cgroup_lines)
    for name, text in files.items():
        path = tmp_path / "cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return HostRoots(tmp_path / "proc", tmp_path / "cgroup")


def v2(directory: str, limit: str, usage: int, cache: int = 0) -> dict[str, str]:
    """Return the files of one level of control groups, version 2."""
    return {
        f"{directory}/memory.max": f"{limit}\n",
        f"{directory}/memory.current": f"{usage}\n",
        f"{directory}/memory.stat": f"anon 1\ninactive_file {cache // 2}\nactive_file {cache - cache // 2}\n",
        f"{directory}/memory.events": "low 0\noom 1\noom_kill 2\n",
    }


def test_host_counts_where_no_group_limits(tmp_path: Path) -> None:
    """Without limits what the host has left is what there is."""
    assert available_bytes(roots(tmp_path, "0::/a\n", v2("a", "max", GIB))) == 8 * GIB


@pytest.mark.parametrize("limited", ["a", "a/b"])
def test_tightest_level_counts(tmp_path: Path, limited: str) -> None:
    """Every group above this process limits it; file cache counts as free."""
    files = v2("a", "max", 0) | v2("a/b", "max", 0) | v2(limited, str(3 * GIB), 2 * GIB, GIB // 2)
    assert available_bytes(roots(tmp_path, "0::/a/b\n", files)) == GIB + GIB // 2


def test_container_that_sees_its_group_as_root_is_limited(tmp_path: Path) -> None:
    """Inside a cgroup namespace the mount itself is the container's level."""
    assert available_bytes(roots(tmp_path, "0::/\n", v2(".", str(2 * GIB), GIB))) == GIB


def test_version_1_paths_of_the_host_fall_back_to_the_mount(tmp_path: Path) -> None:
    """A path that exists only on the host leaves the mount's own files to read."""
    files = {
        "memory/memory.limit_in_bytes": str(2 * GIB),
        "memory/memory.usage_in_bytes": str(GIB),
        "memory/memory.stat": "total_inactive_file 0\n",
        "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n",
    }
    found = roots(tmp_path, "4:memory:/docker/abc\n1:cpu:/docker/abc\n", files)
    assert available_bytes(found) == GIB


def test_used_up_group_has_nothing_left(tmp_path: Path) -> None:
    """Usage above the limit is no negative room."""
    assert available_bytes(roots(tmp_path, "0::/a\n", v2("a", str(GIB), 2 * GIB))) == 0


def test_unknown_is_none(tmp_path: Path) -> None:
    """Where the kernel says nothing there is no number."""
    assert available_bytes(HostRoots(tmp_path, tmp_path)) is None


def children() -> list[tuple[tuple[ProbeRequest, ...], float]]:
    """Return what each measured child ran on a real card, and its peak in MiB."""
    once = json.loads((MEASURED / "every_probe_once.json").read_text())
    beside = json.loads((MEASURED / "beside_pytorch.json").read_text())
    runs = [*once, *(one["events"] for kind in ("matmul", "resnet") for one in beside[kind] if "events" in one)]
    found = []
    for events in runs:
        results = [event for event in events if event["event"] == "result"]
        requests = (
            ProbeRequest(one["probe"], one["dtype"], int(one["shape"].split("x")[0]), mode=one["mode"])
            if one["probe"] == "matmul"
            else ProbeRequest(one["probe"], one["dtype"], mode=one["mode"])
            for one in results
        )
        found.append((tuple(requests), events[-1]["host_peak_bytes"] / (1 << 20)))
    return found


def test_no_measured_child_took_more_than_it_is_said_to_need() -> None:
    """With a margin; a child let in where it does not fit is killed, and with it whoever shares its limit."""
    measured = children()
    assert len(measured) >= 11
    for requests, peak_mib in measured:
        assert needed_mib(requests, "gpu", -1.0) >= MARGIN * peak_mib, requests


def test_the_need_goes_by_what_is_run() -> None:
    """Every probe has one, a day's measurements need more than an hour's, a CPU's less; a number set counts for all."""
    hourly, daily, _ = (plan.requests for plan in plans("gpu", daily=True, data_dir=""))
    (on_cpu,) = (plan.requests for plan in plans("cpu", daily=True, data_dir=""))
    assert set(NEEDED_MIB) == set(PROBE_KINDS)
    assert needed_mib(on_cpu, "cpu", -1.0) < needed_mib(hourly, "gpu", -1.0) < needed_mib(daily, "gpu", -1.0)
    assert {needed_mib(plan, "gpu", 100.0) for plan in (hourly, daily)} == {100.0}
    assert needed_mib((), "gpu", -1.0) == 0.0


def test_kills_are_counted_in_host_and_own_group(tmp_path: Path) -> None:
    """Both the host's counter and the innermost group's are evidence."""
    assert oom_kills(roots(tmp_path, "0::/a\n", v2("a", "max", 0))) == 5


def test_kills_of_a_silent_kernel_are_none(tmp_path: Path) -> None:
    """Without counters nothing is claimed."""
    assert oom_kills(HostRoots(tmp_path, tmp_path)) == 0
