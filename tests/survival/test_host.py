"""Cases 10 and 11: odd kernel data, and a network filesystem that blocks."""

import sys
from pathlib import Path

import pytest

from tests.support.agent import running_agent
from tests.support.process import look
from tests.survival.story import FAST, await_ticks, check_metrics
from tests.survival.test_cards import host_tree


class TestCase10OddKernelData:
    """What the kernel shows is missing, cut short, or not what anybody expects."""

    @pytest.mark.parametrize(
        ("name", "content", "collector"),
        [
            ("diskstats", None, "disk"),
            ("diskstats", "8 0 sda 1 2\n", "disk"),
            ("stat", "cpu  1 2 x 4\n", "cpu"),
            ("net/dev", "Inter-|\n face |\n eth0: 1 2\n", "network"),
            ("loadavg", "", "load"),
            ("meminfo", "MemTotal: many kB\n", "memory"),
        ],
    )
    def test_one_collector_fails_alone(self, tmp_path: Path, name: str, content: str | None, collector: str) -> None:
        """Its success is 0 and counted by reason, all others' are 1, and the page is valid."""
        proc = host_tree(tmp_path)
        (proc / name).unlink() if content is None else (proc / name).write_text(content)
        roots = {"HEATSOAK_HOST_PROC_ROOT": str(proc), "HEATSOAK_HOST_SYS_ROOT": str(tmp_path / "nothing")}
        with running_agent(tmp_path, environ={**FAST, **roots}) as agent:
            await_ticks(agent, 3)
            success = {
                dict(key)["collector"]: value for key, value in agent.metrics()["heatsoak_collector_success"].items()
            }
            assert {name for name, value in success.items() if not value} - {"nvml"} == {collector}
            assert len(agent.events("collector_failed")) == 1
            check_metrics(agent.get("/metrics")[1])

    def test_cpu_and_disk_removed_while_running(self, tmp_path: Path) -> None:
        """Fewer CPUs and no disk from one tick to the next: no failure but of the disks."""
        proc = host_tree(tmp_path)
        with running_agent(tmp_path, environ={**FAST, "HEATSOAK_HOST_PROC_ROOT": str(proc)}) as agent:
            await_ticks(agent, 3)
            (proc / "stat").write_text("cpu  10 0 5 80 0 0 0 0 0 0\ncpu3 10 0 5 80 0 0 0 0 0 0\nbtime 1\n")
            (proc / "diskstats").write_text("")
            await_ticks(agent, 5)
            assert agent.value("heatsoak_host_cpus") == 1.0
            assert agent.value("heatsoak_collector_success", collector="cpu") == 1.0
            assert agent.series("heatsoak_host_disk_reads_total") == []
            assert agent.get("/livez")[0] == 200


class TestCase11BlockedFilesystem:
    """A filesystem whose server does not answer is mounted."""

    @pytest.mark.system
    def test_agent_never_touches_it(self, tmp_path: Path) -> None:
        """A FUSE mount that answers nothing, as a dead NFS server's: ticks, threads and the end are as without it."""
        mounted = tmp_path / "dead"
        mounted.mkdir()
        blocked = ("unshare", "--mount", sys.executable, "-m", "tests.support.blocked_filesystem", str(mounted))
        with running_agent(tmp_path, scenario="h200", environ=FAST, before=blocked) as agent:
            assert str(mounted) in Path(f"/proc/{agent.pid}/mounts").read_text()
            await_ticks(agent, 5)
            threads = look(agent.pid).threads
            await_ticks(agent, 50)
            assert look(agent.pid).threads == threads
            assert (agent.value("heatsoak_tick_overruns_total") or 0.0) <= 3.0
            assert agent.stop() == 0

    def test_no_collector_asks_for_filesystem_sizes(self, tmp_path: Path) -> None:
        """Only /dev/shm, which lives in memory, is asked for its size: no mount point appears on the page."""
        with running_agent(tmp_path, environ=FAST) as agent:
            await_ticks(agent, 2)
            assert not [name for name in agent.metrics() if "filesystem" in name or "mount" in name]
            assert agent.value("heatsoak_host_shm_size_bytes") is not None
