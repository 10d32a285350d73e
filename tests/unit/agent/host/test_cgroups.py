"""Control groups of both versions."""

from pathlib import Path

import pytest

from agent.host.cgroup import Cgroup
from agent.host.cgroups import Cgroups, CpuQuota
from agent.host.collector import NothingHereError
from agent.host.files import Tree
from agent.model.process import CgroupReading
from tests.support.trees import make_tree

STAT = "usage_usec 9\nnr_periods 125\nnr_throttled 100\nthrottled_usec 2500000\n"
PRESSURE = "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000000\n"
POD = "fs/cgroup/kubepods.slice/pod7.slice"
MEMBER = "0::/kubepods.slice/pod7.slice/main.scope\n"


def version2(root: Path) -> Cgroups:
    """Return the groups of a pod with quota 2 cores and of its container with 4."""
    tree = make_tree(
        root,
        {
            "fs/cgroup/cpu.stat": "usage_usec 9\n",
            f"{POD}/cpu.max": "200000 100000\n",
            f"{POD}/cpu.stat": STAT,
            f"{POD}/memory.max": "1000\n",
            f"{POD}/main.scope/cpu.max": "400000 100000\n",
            f"{POD}/main.scope/memory.max": "max\n",
            f"{POD}/main.scope/memory.current": "500\n",
            f"{POD}/main.scope/cpu.pressure": PRESSURE,
            f"{POD}/main.scope/io.pressure": PRESSURE,
            f"{POD}/main.scope/io.stat": "8:0 rbytes=100 wbytes=5 rios=1\n259:0 rbytes=23 wbytes=0\n",
        },
    )
    return Cgroups(tree, tree)


def test_the_tightest_limit_up_the_tree_counts(tmp_path: Path) -> None:
    """The pod's quota holds for its container, and so does the count of its throttling."""
    cgroups = version2(tmp_path)
    assert cgroups.cpu_quota(MEMBER) == CpuQuota(2.0, 125, 100, 2.5)
    assert cgroups.memory_limit_bytes(MEMBER) == 1000
    assert cgroups.memory_used_bytes(MEMBER) == 500


def test_a_process_is_read_with_all_that_its_group_says(tmp_path: Path) -> None:
    """Quota, throttling, pressure and disk reads."""
    assert version2(tmp_path).reading(MEMBER) == CgroupReading(
        quota_cores=2.0,
        periods=125,
        throttled_periods=100,
        throttled_s=2.5,
        cpu_pressure_s=3.0,
        io_pressure_s=3.0,
        read_bytes=123,
    )


def test_what_the_kernel_does_not_say_is_none(tmp_path: Path) -> None:
    """No membership, or a group that is not there: nothing is known, nothing is made up."""
    cgroups = version2(tmp_path)
    assert cgroups.reading("") == cgroups.reading("0::/gone\n") == CgroupReading()
    assert cgroups.memory_used_bytes("") is None


def test_from_a_container_other_pods_are_found_through_its_own_place(tmp_path: Path) -> None:
    """Paths are relative to the agent's own group, which its inode gives away in the host's tree."""
    version2(tmp_path / "host")
    own = tmp_path / "host/fs/cgroup/kubepods.slice/agent.slice/agent.scope"
    own.mkdir(parents=True)
    (tmp_path / "own/fs").mkdir(parents=True)
    (tmp_path / "own/fs/cgroup").symlink_to(own)
    cgroups = Cgroups(Tree(str(tmp_path / "host")), Tree(str(tmp_path / "own")))
    quota = cgroups.cpu_quota("0::/../../pod7.slice/main.scope\n")
    assert quota is not None
    assert quota.cores == 2.0
    assert cgroups.lineage("0::/\n", "cpu")[0].path.endswith("/agent.slice/agent.scope")


def test_a_path_outside_the_mount_is_unknown(tmp_path: Path) -> None:
    """It never becomes the whole machine's."""
    cgroups = version2(tmp_path)
    assert cgroups.lineage("3:cpu,cpuacct:/../x\n", "cpu") == ()


def test_version_1_is_read_by_controller(tmp_path: Path) -> None:
    """Other names, nanoseconds, and limits that mean none."""
    tree = make_tree(
        tmp_path,
        {
            "fs/cgroup/cpu/a/cpu.cfs_quota_us": "150000\n",
            "fs/cgroup/cpu/a/cpu.cfs_period_us": "100000\n",
            "fs/cgroup/cpu/a/cpu.stat": "nr_periods 10\nnr_throttled 4\nthrottled_time 2000000000\n",
            "fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "fs/cgroup/memory/a/memory.limit_in_bytes": "9223372036854771712\n",
            "fs/cgroup/memory/a/memory.usage_in_bytes": "77\n",
            "fs/cgroup/blkio/a/blkio.throttle.io_service_bytes": (
                "8:0 Read 40\n8:0 Write 5\n8:0 Total 45\n9:0 Read 2\nTotal 47\n"
            ),
        },
    )
    member = "4:memory:/a\n3:blkio:/a\n2:cpu,cpuacct:/a\n1:name=systemd:/a\n"
    cgroups = Cgroups(tree, tree)
    assert cgroups.cpu_quota(member) == CpuQuota(1.5, 10, 4, 2.0)
    assert cgroups.memory_limit_bytes(member) is None
    assert cgroups.memory_used_bytes(member) == 77
    assert cgroups.reading(member).read_bytes == 42


def test_both_versions_at_once_are_told_apart_by_controller(tmp_path: Path) -> None:
    """A controller of version 1 hides version 2 for it alone."""
    tree = make_tree(
        tmp_path,
        {
            "fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "fs/cgroup/unified/a/cpu.pressure": PRESSURE,
            "fs/cgroup/unified/a/memory.max": "5\n",
        },
    )
    cgroups = Cgroups(tree, tree)
    member = "1:cpu:/\n0::/a\n"
    assert [group.unified for group in cgroups.lineage(member, "cpu")] == [False]
    assert cgroups.memory_limit_bytes(member) == 5


class TestCollector:
    """The agent's own groups."""

    def test_limits_and_use_of_the_own_group(self, tmp_path: Path) -> None:
        """Each metric where there is a figure."""
        proc = make_tree(tmp_path / "proc", {"self/cgroup": MEMBER})
        seen = {sample.name: sample.value for sample in Cgroup(proc, version2(tmp_path / "sys")).collect()}
        assert seen == {
            "heatsoak_host_cgroup_cpu_limit_cores": 2.0,
            "heatsoak_host_cgroup_cpu_periods_total": 125,
            "heatsoak_host_cgroup_cpu_throttled_periods_total": 100,
            "heatsoak_host_cgroup_cpu_throttled_seconds_total": 2.5,
            "heatsoak_host_cgroup_memory_limit_bytes": 1000,
            "heatsoak_host_cgroup_memory_used_bytes": 500,
        }

    def test_without_a_limit_the_limit_is_absent(self, tmp_path: Path) -> None:
        """Not infinity, not 0."""
        proc = make_tree(tmp_path / "proc", {"self/cgroup": "0::/a\n"})
        sys = make_tree(tmp_path / "sys", {"fs/cgroup/a/memory.current": "5\n", "fs/cgroup/a/cpu.max": "max 100000\n"})
        (sample,) = Cgroup(proc, Cgroups(sys, sys)).collect()
        assert (sample.name, sample.value) == ("heatsoak_host_cgroup_memory_used_bytes", 5)

    def test_in_a_container_of_version_1_the_mount_is_the_own_group(self, tmp_path: Path) -> None:
        """The path is the host's, the mount shows the container's group only."""
        proc = make_tree(tmp_path / "proc", {"self/cgroup": "1:cpu:/docker/1f\n2:memory:/docker/1f\n"})
        sys = make_tree(
            tmp_path / "sys",
            {
                "fs/cgroup/memory/memory.limit_in_bytes": "1000\n",
                "fs/cgroup/cpu/cpu.cfs_quota_us": "50000\n",
                "fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
        )
        seen = {sample.name: sample.value for sample in Cgroup(proc, Cgroups(sys, sys)).collect()}
        assert seen["heatsoak_host_cgroup_memory_limit_bytes"] == 1000
        assert seen["heatsoak_host_cgroup_cpu_limit_cores"] == 0.5

    def test_no_group_is_nothing(self, tmp_path: Path) -> None:
        """No failure."""
        proc = make_tree(tmp_path / "proc", {"self/cgroup": "0::/\n"})
        sys = make_tree(tmp_path / "sys", {"fs/cgroup/cpu.stat": "usage_usec 1\n"})
        with pytest.raises(NothingHereError):
            Cgroup(proc, Cgroups(sys, sys)).collect()

    def test_a_quota_that_is_no_number_fails(self, tmp_path: Path) -> None:
        """Nothing is guessed."""
        proc = make_tree(tmp_path / "proc", {"self/cgroup": "0::/\n"})
        sys = make_tree(tmp_path / "sys", {"fs/cgroup/cpu.max": "lots\n"})
        with pytest.raises(ValueError, match="lots"):
            Cgroup(proc, Cgroups(sys, sys)).collect()
