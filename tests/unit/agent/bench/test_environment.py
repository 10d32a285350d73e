"""Where a benchmark was made: read from trees that are not this machine's, and without what names a card."""

from pathlib import Path

import msgspec
import pytest

from agent.bench.environment import (
    card_facts,
    card_id,
    container,
    cpu_name,
    default_label,
    differences,
    machine_of,
    masked,
    with_software,
)
from agent.bench.model import Machine
from agent.config.settings import HostSettings, Settings
from agent.model.probe import Device, Environment
from agent.model.snapshot import Card, CardIdentity, NvmlHealth
from tests.support.trees import make_tree
from tests.unit.agent.bench.results import MACHINE, bench_result, training

UUID = "GPU-00000000-0000-4000-8000-000000000001"
CARD = Card(
    CardIdentity(1, UUID, "NVIDIA H200", "1650000000001", "0000:1b:00.0", "96.00", "580.159.04", "9.0"),
    {
        "memory_total_bytes": 150e9, "power_limit_enforced_watts": 600.0, "power_limit_default_watts": 700.0,
        "clock_max_sm_hertz": 1.98e9, "clock_max_memory_hertz": 3.2e9, "ecc_enabled": 1.0, "mig_enabled": 0.0,
        "pcie_generation_max": 5.0, "pcie_width_max_lanes": 16.0,
    },
)  # fmt: skip


def test_machine_is_read_from_driver_and_kernel(tmp_path: Path) -> None:
    """Processor, memory, kernel, and the card's own limits and modes."""
    proc = tmp_path / "proc"
    make_tree(
        proc,
        {
            "cpuinfo": "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor\n",
            "meminfo": "MemTotal:       2048 kB\n",
            "self/cgroup": "0::/\n",
            "sys/kernel/osrelease": "6.1.0\n",
        },
    )
    make_tree(tmp_path / "sys", {"class/dmi/id/sys_vendor": "QEMU\n"})
    settings = Settings(host=HostSettings(proc_root=str(proc), sys_root=str(tmp_path / "sys")))
    machine = machine_of("gpu", (CARD,), NvmlHealth(up=True, driver="580.159.04"), settings, {})
    assert (machine.driver, machine.cpu, machine.kernel) == ("580.159.04", "Some CPU @ 2 GHz", "6.1.0")
    assert machine.memory_bytes == 2048 * 1024
    assert machine.cpus >= 1
    assert machine.hypervisor.startswith("kvm QEMU")
    assert machine.topology == ()
    assert machine.tensorflow == ""
    (card,) = machine.cards
    assert (card.index, card.name, card.vbios, card.compute_capability) == (1, "NVIDIA H200", "96.00", "9.0")
    assert (card.power_limit_watts, card.power_limit_default_watts) == (600.0, 700.0)
    assert (card.ecc_enabled, card.mig_enabled, card.pcie_generation_max) == (True, False, 5.0)


def test_what_the_driver_does_not_say_is_none() -> None:
    """Never 0."""
    bare = card_facts(Card(CARD.identity))
    assert (bare.memory_bytes, bare.ecc_enabled, bare.clock_sm_max_hertz) == (None, None, None)


def test_nothing_that_names_a_card_is_kept() -> None:
    """UUID, bus id and serial are gone from facts and records; the same card has the same eight digits."""
    record = training(64)
    told = msgspec.structs.replace(record.result, detail=f"CUDA opened {UUID}")
    device = Device("gpu", "NVIDIA H200", UUID, "0000:1b:00.0")
    hidden = masked(msgspec.structs.replace(record, uuid=UUID, device=device, result=told))
    text = (msgspec.json.encode(hidden.device) + msgspec.json.encode(card_facts(CARD))).decode() + hidden.result.detail
    assert UUID not in text
    assert "0000:1b:00.0" not in text
    assert "1650000000001" not in text
    assert hidden.uuid == card_facts(CARD).id == card_id(UUID)
    assert len(hidden.uuid) == 8
    assert masked(msgspec.structs.replace(record, uuid="cpu")).uuid == "cpu"


def test_a_record_names_no_folder_of_the_machine() -> None:
    """A failure quotes a traceback; whose home it was in is nobody's business, even where the text is cut off."""
    text = 'at gradient_tape/Conv2D: File "/home/someone/venv/run.py", line 1; https://a.example/b; "/home/someone/ven'
    record = training(16, status="error", reason="failed:InternalError")
    told = msgspec.structs.replace(record.result, detail=text)
    hidden = masked(msgspec.structs.replace(record, result=told)).result.detail
    assert hidden == 'at gradient_tape/Conv2D: File "run.py", line 1; https://a.example/b; "ven'


def test_versions_come_from_the_child_but_the_drivers_own_word_stays() -> None:
    """What CUDA says of the driver is less exact."""
    software = Environment("3.12", "2.21.0", "12.5", "9", "12.8")
    assert with_software(MACHINE, software).driver == "580.159.04"
    assert with_software(Machine("gpu"), software).driver == "12.8"
    assert with_software(MACHINE, software).cudnn == "9"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"driver": "570.1"}, "driver: 580.159.04 in the file, 570.1 now"),
        ({"tensorflow": "2.9.0"}, "TensorFlow: 2.21.0 in the file, 2.9.0 now"),
        ({"cards": ()}, "cards: 0 NVIDIA H200 0123abcd in the file, none now"),
        ({"device": "cpu"}, "device: gpu in the file, cpu now"),
        ({"cpu": "Other", "cpus": 8}, "processor: 0 x unknown in the file, 8 x Other now"),
    ],
)
def test_what_does_not_belong_together_is_named(change: dict[str, object], word: str) -> None:
    """Before and now."""
    assert differences(bench_result({}), msgspec.structs.replace(MACHINE, **change)) == [word]


def test_a_power_limit_counts_where_it_is_known_on_both_sides() -> None:
    """A card that was slowed down half way is no longer the same card."""
    limited = msgspec.structs.replace(
        MACHINE, cards=(msgspec.structs.replace(MACHINE.cards[0], power_limit_watts=300.0),)
    )
    unread = msgspec.structs.replace(
        MACHINE, cards=(msgspec.structs.replace(MACHINE.cards[0], power_limit_watts=None),)
    )
    assert differences(bench_result({}), limited) == ["power limit of gpu 0: 700 W in the file, 300 W now"]
    assert differences(bench_result({}), unread) == []


def test_unknown_software_may_still_turn_out_right() -> None:
    """TensorFlow's version is known with the first child only."""
    unknown = msgspec.structs.replace(MACHINE, tensorflow="", kernel="7")
    assert differences(bench_result({}), unknown) == []


def test_label_names_cards_and_tensorflow() -> None:
    """The processor where there is no card."""
    assert default_label(MACHINE) == "NVIDIA H200, TensorFlow 2.21.0"
    assert default_label(msgspec.structs.replace(MACHINE, cards=MACHINE.cards * 2)).startswith("2 x NVIDIA H200,")
    assert default_label(Machine("cpu", cpu="Some CPU", tensorflow="2.9.0")) == "Some CPU, TensorFlow 2.9.0"


def test_container_is_known_from_inside(tmp_path: Path) -> None:
    """By the notes that runtimes leave; only podman tells the image."""
    assert container({}, tmp_path) == ""
    assert container({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, tmp_path) == "kubernetes"
    image = "0f3e" * 16
    note = f'engine="podman-4.9.3"\nname="secret"\nid="77"\nimage="registry/name:tag"\nimageid="{image}"\n'
    make_tree(tmp_path, {"run/.containerenv": note})
    assert container({"container": "podman"}, tmp_path) == f"podman-4.9.3, podman, image {image}"
    docker = tmp_path / "other"
    make_tree(docker, {".dockerenv": "", "proc/self/cgroup": "12:memory:/docker/77aa\n"})
    assert container({}, docker) == "docker"
    pod = tmp_path / "pod"
    make_tree(pod, {"proc/self/cgroup": "0::/kubepods.slice/cri-containerd-77aa.scope\n"})
    assert container({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, pod) == "kubernetes, containerd"


def test_processor_without_a_name_is_empty(tmp_path: Path) -> None:
    """As on ARM, or where /proc is not mounted."""
    assert cpu_name(make_tree(tmp_path / "arm", {"cpuinfo": "processor\t: 0\nCPU part\t: 0xd40\n"})) == ""
    assert cpu_name(make_tree(tmp_path / "none", {})) == ""
