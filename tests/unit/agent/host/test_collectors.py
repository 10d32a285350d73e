"""Each collector over trees as kernels show them, odd ones included."""

import errno
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.config.settings import HostSettings
from agent.host.collect import HOST_METRICS
from agent.host.collector import NothingHereError
from agent.host.cpu import TICKS_PER_S, Cpu
from agent.host.disk import Disk
from agent.host.files import Tree
from agent.host.load import Load
from agent.host.memory import Memory, Swap
from agent.host.network import Network
from agent.host.pressure import Pressure
from agent.host.shm import SharedMemory
from agent.host.system import Hypervisor, System
from agent.model.metrics import Sample
from tests.support.trees import make_tree

EXCLUDE = HostSettings()
STAT = (
    "cpu  100 20 30 4000 50 0 7 8 0 0\ncpu0 50 10 15 2000 25 0 3 4 0 0\n"
    "cpu3 50 10 15 2000 25 0 4 4 0 0\nintr 5 0 1\nbtime 1700000000\n"
)


def values(samples: list[Sample]) -> dict[str, float]:
    """Return samples by name and labels, as ``name{label}``, the common prefix cut."""
    return {
        sample.name.removeprefix("heatsoak_host_")
        + (f"{{{','.join(sample.labels)}}}" if sample.labels else ""): sample.value
        for sample in samples
    }


class TestCpu:
    """CPU seconds by mode."""

    def test_modes_are_seconds_and_gaps_in_numbering_do_not_count(self, tmp_path: Path) -> None:
        """With CPU 1 and 2 removed, two are online."""
        seen = values(Cpu(make_tree(tmp_path, {"stat": STAT})).collect())
        assert seen["cpu_seconds_total{user}"] == 100 / TICKS_PER_S
        assert seen["cpu_seconds_total{steal}"] == 8 / TICKS_PER_S
        assert seen["cpus"] == 2
        assert seen["boot_time_seconds"] == 1_700_000_000
        assert len(seen) == 10

    def test_time_that_runs_back_a_little_is_held(self, tmp_path: Path) -> None:
        """Idle and iowait do so; a reader would take it for a restart of the counter."""
        cpu = Cpu(make_tree(tmp_path, {"stat": STAT}))
        cpu.collect()
        make_tree(tmp_path, {"stat": STAT.replace(" 4000 50 ", " 3999 51 ")})
        seen = values(cpu.collect())
        assert seen["cpu_seconds_total{idle}"] == 4000 / TICKS_PER_S
        assert seen["cpu_seconds_total{iowait}"] == 51 / TICKS_PER_S

    def test_time_that_starts_anew_is_followed(self, tmp_path: Path) -> None:
        """A large step back is no rounding."""
        cpu = Cpu(make_tree(tmp_path, {"stat": STAT.replace("4000", "90000000")}))
        cpu.collect()
        make_tree(tmp_path, {"stat": STAT})
        assert values(cpu.collect())["cpu_seconds_total{idle}"] == 4000 / TICKS_PER_S

    def test_an_old_kernel_knows_fewer_modes(self, tmp_path: Path) -> None:
        """What is not there is absent."""
        seen = values(Cpu(make_tree(tmp_path, {"stat": "cpu 1 2 3 4\n"})).collect())
        assert set(seen) == {f"cpu_seconds_total{{{mode}}}" for mode in ("user", "nice", "system", "idle")} | {"cpus"}

    @pytest.mark.parametrize("text", ["", "intr 5\n", "cpu 1 2\n", "cpu a b c d\n"])
    def test_anything_else_is_refused(self, tmp_path: Path, text: str) -> None:
        """No number is made up."""
        with pytest.raises(ValueError, match=r"cpu|invalid literal"):
            Cpu(make_tree(tmp_path, {"stat": text})).collect()


class TestLoad:
    """Load averages."""

    def test_three_averages(self, tmp_path: Path) -> None:
        """1, 5 and 15 minutes."""
        seen = values(Load(make_tree(tmp_path, {"loadavg": "0.10 2.5 16.00 1/95 11680\n"})).collect())
        assert seen == {"load1": 0.1, "load5": 2.5, "load15": 16.0}

    @pytest.mark.parametrize("text", ["", "0.1 0.2", "a b c"])
    def test_less_is_refused(self, tmp_path: Path, text: str) -> None:
        """All three or none."""
        with pytest.raises(ValueError, match=r"argument|could not convert"):
            Load(make_tree(tmp_path, {"loadavg": text})).collect()


class TestMemory:
    """Memory and swap."""

    MEMINFO = (
        "MemTotal: 1000 kB\nMemFree: 400 kB\nMemAvailable: 700 kB\nBuffers: 1 kB\nCached: 2 kB\n"
        "SwapTotal: 10 kB\nSwapFree: 9 kB\n"
    )

    def test_memory_is_bytes(self, tmp_path: Path) -> None:
        """Kibibytes become bytes."""
        seen = values(Memory(make_tree(tmp_path, {"meminfo": self.MEMINFO})).collect())
        assert seen == {
            "memory_total_bytes": 1024_000,
            "memory_available_bytes": 716_800,
            "memory_free_bytes": 409_600,
            "memory_buffers_bytes": 1024,
            "memory_cached_bytes": 2048,
        }

    def test_a_missing_field_fails_the_whole(self, tmp_path: Path) -> None:
        """No half of a reading."""
        tree = make_tree(tmp_path, {"meminfo": "MemTotal: 1 kB\n"})
        with pytest.raises(KeyError):
            Memory(tree).collect()

    def test_swap_is_bytes_of_pages(self, tmp_path: Path) -> None:
        """What was swapped counts in the machine's pages."""
        tree = make_tree(tmp_path, {"meminfo": self.MEMINFO, "vmstat": "pgpgin 9\npswpin 2\npswpout 3\n"})
        seen = values(Swap(tree).collect())
        assert (seen["swap_total_bytes"], seen["swap_free_bytes"]) == (10_240, 9_216)
        assert seen["swap_out_bytes_total"] == 1.5 * seen["swap_in_bytes_total"] > 0

    def test_a_kernel_without_swap_has_nothing(self, tmp_path: Path) -> None:
        """It is no failure."""
        tree = make_tree(tmp_path, {"meminfo": "MemTotal: 1 kB\n", "vmstat": "pgpgin 9\n"})
        with pytest.raises(NothingHereError, match="CONFIG_SWAP"):
            Swap(tree).collect()


class TestPressure:
    """Pressure stall information."""

    LINES = (
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=2000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\n"
    )

    def test_stalls_by_resource(self, tmp_path: Path) -> None:
        """Seconds; the CPU's full line means nothing for a whole machine."""
        tree = make_tree(tmp_path, {f"pressure/{name}": self.LINES for name in ("cpu", "io", "memory")})
        assert values(Pressure(tree).collect()) == {
            "pressure_seconds_total{cpu,some}": 2.0,
            "pressure_seconds_total{io,some}": 2.0,
            "pressure_seconds_total{io,full}": 1.0,
            "pressure_seconds_total{memory,some}": 2.0,
            "pressure_seconds_total{memory,full}": 1.0,
        }

    def test_without_it_the_boot_option_is_named(self, tmp_path: Path) -> None:
        """Absent is no failure, and says how to have it."""
        with pytest.raises(NothingHereError, match="psi=1"):
            Pressure(make_tree(tmp_path, {})).collect()

    def test_switched_off_at_boot_the_kernel_refuses_to_open_it(self) -> None:
        """Kernels that keep the files answer EOPNOTSUPP."""
        with pytest.raises(NothingHereError, match="not supported"):
            Pressure(Refusing(errno.EOPNOTSUPP)).collect()

    def test_another_error_is_a_failure(self) -> None:
        """Only those two mean that there is none."""
        with pytest.raises(OSError, match="Input/output"):
            Pressure(Refusing(errno.EIO)).collect()


class Refusing(Tree):
    """A tree of which nothing can be read."""

    def __init__(self, number: int) -> None:
        super().__init__("/nowhere")
        self._error = OSError(number, f"{errno.errorcode[number]} {os.strerror(number)}")

    def read(self, path: str, limit_bytes: int = 0) -> str:  # noqa: ARG002
        raise self._error


class TestDisk:
    """Disk I/O."""

    LINE = " 259 0 {} 10 1 16 5 20 2 32 6 0 1500 11 0 0 0 0 0 0\n"

    def disk(self, tmp_path: Path, *names: str) -> Disk:
        """Return the collector over disks of these names and partitions of each."""
        lines = "".join(self.LINE.format(name) + self.LINE.format(f"{name}p1") for name in names)
        (tmp_path / "sys/block").mkdir(parents=True)
        for name in names:
            (tmp_path / "sys/block" / name.replace("/", "!")).mkdir()
        return Disk(
            make_tree(tmp_path / "proc", {"diskstats": lines}), Tree(str(tmp_path / "sys")), EXCLUDE.disk_exclude
        )

    def test_whole_disks_only(self, tmp_path: Path) -> None:
        """No partitions, loop and RAM devices; a slash in a name is kept."""
        seen = values(self.disk(tmp_path, "nvme0n1", "loop0", "zram0", "cciss/c0d0").collect())
        assert {name.partition("{")[2] for name in seen} == {"nvme0n1}", "cciss/c0d0}"}
        assert seen["disk_reads_total{nvme0n1}"] == 10
        assert seen["disk_read_bytes_total{nvme0n1}"] == 16 * 512
        assert seen["disk_writes_total{nvme0n1}"] == 20
        assert seen["disk_written_bytes_total{nvme0n1}"] == 32 * 512
        assert seen["disk_io_time_seconds_total{nvme0n1}"] == 1.5

    def test_a_disk_pulled_out_is_gone_at_the_next_tick(self, tmp_path: Path) -> None:
        """No series outlives its device."""
        disk = self.disk(tmp_path, "sda", "sdb")
        assert len(disk.collect()) == 10
        make_tree(tmp_path / "proc", {"diskstats": self.LINE.format("sda")})
        assert {sample.labels for sample in disk.collect()} == {("sda",)}

    def test_without_sys_the_pattern_alone_decides(self, tmp_path: Path) -> None:
        """The default pattern knows partitions by their names."""
        lines = "".join(map(self.LINE.format, ("sda", "sda1", "nvme0n1", "nvme0n1p2", "vda", "vda15", "mmcblk0p1")))
        disk = Disk(make_tree(tmp_path, {"diskstats": lines}), Tree("/nowhere"), EXCLUDE.disk_exclude)
        assert {sample.labels for sample in disk.collect()} == {("sda",), ("nvme0n1",), ("vda",)}

    def test_no_disk_is_nothing_and_no_diskstats_is_a_failure(self, tmp_path: Path) -> None:
        """The two differ."""
        with pytest.raises(NothingHereError):
            self.disk(tmp_path, "loop0").collect()
        with pytest.raises(FileNotFoundError):
            Disk(Tree(str(tmp_path / "none")), Tree("/nowhere"), "^$").collect()

    @pytest.mark.parametrize("line", ["\n", "8 0\n", "8 0 sda 1 2 3\n", "8 0 sda " + "x " * 11 + "\n"])
    def test_a_broken_line_fails_the_whole(self, tmp_path: Path, line: str) -> None:
        """All or nothing."""
        tree = make_tree(tmp_path, {"diskstats": self.LINE.format("sda") + line})
        with pytest.raises((ValueError, LookupError)):
            Disk(tree, Tree("/nowhere"), "^$").collect()


class TestNetwork:
    """Network I/O."""

    HEAD = "Inter-|   Receive    |  Transmit\n face |bytes ...\n"
    LINE = "{:>6}: 100 1 2 3 0 0 0 0 200 4 5 6 0 0 0 0\n"

    def network(self, tmp_path: Path, *names: str, path: str = "1/net/dev") -> Network:
        """Return the collector over devices of these names."""
        text = self.HEAD + "".join(map(self.LINE.format, names))
        return Network(make_tree(tmp_path, {path: text}), EXCLUDE.network_exclude)

    def test_counters_by_device_without_those_of_containers(self, tmp_path: Path) -> None:
        """veth, cali, docker and the loopback are left out."""
        seen = values(self.network(tmp_path, "eth0", "lo", "veth1a2b", "cali12", "docker0", "br-af", "ib0").collect())
        assert {name.partition("{")[2] for name in seen} == {"eth0}", "ib0}"}
        assert seen["network_receive_bytes_total{eth0}"] == 100
        assert seen["network_receive_errors_total{eth0}"] == 2
        assert seen["network_receive_drops_total{eth0}"] == 3
        assert seen["network_transmit_bytes_total{eth0}"] == 200
        assert seen["network_transmit_errors_total{eth0}"] == 5
        assert seen["network_transmit_drops_total{eth0}"] == 6

    def test_where_the_first_process_is_hidden_the_own_network_is_read(self, tmp_path: Path) -> None:
        """As under ProtectProc=invisible."""
        assert len(self.network(tmp_path, "eth0", path="net/dev").collect()) == 6

    def test_a_hostile_name_becomes_a_clean_label(self, tmp_path: Path) -> None:
        """Device names may hold any byte but slash, colon and blanks."""
        text = self.HEAD.encode() + b'a\xff"\x01:' + b" 1" * 16 + b"\n"
        network = Network(make_tree(tmp_path, {"net/dev": text}), "^$")
        assert {sample.labels for sample in network.collect()} == {('a\ufffd"\ufffd',)}

    def test_no_device_is_nothing(self, tmp_path: Path) -> None:
        """Only the loopback: no failure."""
        with pytest.raises(NothingHereError, match="network_exclude"):
            self.network(tmp_path, "lo").collect()

    def test_a_broken_line_fails_the_whole(self, tmp_path: Path) -> None:
        """All or nothing."""
        tree = make_tree(tmp_path, {"net/dev": self.HEAD + self.LINE.format("eth0") + "eth1: 1 2\n"})
        with pytest.raises(LookupError):
            Network(tree, "^$").collect()


class TestSharedMemory:
    """Size of /dev/shm."""

    def test_size_and_use_are_of_the_file_system(self, tmp_path: Path) -> None:
        """Used is at most the size."""
        seen = values(SharedMemory(str(tmp_path)).collect())
        assert 0 <= seen["shm_used_bytes"] <= seen["shm_size_bytes"]
        assert seen["shm_size_bytes"] > 0

    def test_without_it_there_is_nothing(self, tmp_path: Path) -> None:
        """No failure."""
        with pytest.raises(NothingHereError, match="none"):
            SharedMemory(str(tmp_path / "none")).collect()


class TestSystem:
    """Kernel, operating system, hypervisor."""

    @pytest.mark.parametrize(
        ("os_release", "name"),
        [
            (
                {"os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'},
                "Debian GNU/Linux 12 (bookworm)",
            ),
            ({"os-release": "PRETTY_NAME=Alpine\n"}, "Alpine"),
            ({"os-release": "\n"}, ""),
            ({}, ""),
        ],
    )
    def test_kernel_and_system_are_named(self, tmp_path: Path, os_release: dict[str, str], name: str) -> None:
        """A system without a name has an empty one."""
        proc = make_tree(tmp_path / "proc", {"sys/kernel/osrelease": "6.1.0-1-amd64\n"})
        system = System(proc, make_tree(tmp_path / "etc", os_release))
        (sample,) = system.collect()
        assert sample.labels[:2] == ("6.1.0-1-amd64", name)
        assert system.collect() == [sample]

    @pytest.mark.parametrize(
        ("cpuinfo", "sys", "labels"),
        [
            ("flags\t: fpu vme\n", {}, ("none", "", "")),
            ("flags\t: fpu hypervisor\n", {}, ("unknown", "", "")),
            ("flags\t: fpu hypervisor\n", {"class/dmi/id/sys_vendor": "QEMU\n"}, ("kvm", "QEMU", "")),
            (
                "flags\t: fpu hypervisor\n",
                {"class/dmi/id/sys_vendor": "VMware, Inc.\n", "class/dmi/id/product_name": "VMware7,1\n"},
                ("vmware", "VMware, Inc.", "VMware7,1"),
            ),
            ("flags\t: fpu\n", {"class/dmi/id/sys_vendor": "Amazon EC2\n"}, ("none", "Amazon EC2", "")),
            ("Features: fp\n", {"hypervisor/type": "xen\n"}, ("xen", "", "")),
        ],
    )
    def test_the_hypervisor_is_named(
        self, tmp_path: Path, cpuinfo: str, sys: dict[str, str], labels: tuple[str, ...]
    ) -> None:
        """By Xen itself, else by the CPU's word and the firmware's vendor; bare metal of a cloud is none."""
        collector = Hypervisor(make_tree(tmp_path / "proc", {"cpuinfo": cpuinfo}), make_tree(tmp_path / "sys", sys))
        assert collector.collect() == collector.collect() == [Sample("heatsoak_host_hypervisor_info", 1, labels)]

    def test_an_arm_cpu_does_not_say(self, tmp_path: Path) -> None:
        """Unknown is absent."""
        with pytest.raises(NothingHereError):
            Hypervisor(make_tree(tmp_path, {"cpuinfo": "Features: fp\n"}), Tree("/nowhere")).collect()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200) | st.text("cpu0123456789 \n:abc-", max_size=200).map(str.encode))
def test_any_file_gives_samples_or_a_foreseen_error(tmp_path: Path, data: bytes) -> None:
    """What the wrapper calls malformed, and nothing else."""
    names = (
        "stat",
        "loadavg",
        "meminfo",
        "vmstat",
        "diskstats",
        "net/dev",
        "pressure/cpu",
        "pressure/io",
        "pressure/memory",
    )
    proc = make_tree(tmp_path, dict.fromkeys(names, data))
    nowhere = Tree("/nowhere")
    for collector in (
        Cpu(proc),
        Load(proc),
        Memory(proc),
        Swap(proc),
        Disk(proc, nowhere, "^$"),
        Network(proc, "^$"),
        Pressure(proc),
    ):
        try:
            samples = collector.collect()
        except (ValueError, LookupError, NothingHereError):
            continue
        assert {sample.name for sample in samples} <= {metric.name for metric in collector.metrics}


def test_every_name_passes_promtool() -> None:
    """Names and helps follow the conventions, and none is given twice."""
    lines = []
    for metric in HOST_METRICS:
        labels = ",".join(f'{label}="x"' for label in metric.labels)
        lines += [
            f"# HELP {metric.name} {metric.help}",
            f"# TYPE {metric.name} {metric.kind}",
            f"{metric.name}{{{labels}}} 1",
        ]
    page = "\n".join(lines) + "\n"
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=page, text=True, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
