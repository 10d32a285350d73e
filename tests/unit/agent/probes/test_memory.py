"""How much memory is left for a child, and what proves that the kernel killed one."""

from pathlib import Path

import pytest

from agent.probes.memory import HostRoots, available_bytes, oom_kills

GIB = 1 << 30


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
        f"{directory}/memory.stat": f"anon 1\ninactive_file {cache}\n",
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


def test_kills_are_counted_in_host_and_own_group(tmp_path: Path) -> None:
    """Both the host's counter and the innermost group's are evidence."""
    assert oom_kills(roots(tmp_path, "0::/a\n", v2("a", "max", 0))) == 5


def test_kills_of_a_silent_kernel_are_none(tmp_path: Path) -> None:
    """Without counters nothing is claimed."""
    assert oom_kills(HostRoots(tmp_path, tmp_path)) == 0
