"""NVIDIA cards on the PCI bus."""

from pathlib import Path

from agent.host.files import Tree
from agent.host.pci import nvidia_bus_ids
from tests.support.trees import make_tree


def device(bus_id: str, vendor: str, device_class: str) -> dict[str, str]:
    """Return the files of one PCI device."""
    folder = f"bus/pci/devices/{bus_id}"
    return {f"{folder}/vendor": f"{vendor}\n", f"{folder}/class": f"{device_class}\n"}


def test_only_nvidias_display_devices_count(tmp_path: Path) -> None:
    """Not its audio, bridges and switches, nor another vendor's cards; lower case, in order."""
    tree = make_tree(
        tmp_path,
        {
            **device("0000:CB:00.0", "0x10DE", "0x030200"),
            **device("0000:1b:00.0", "0x10de", "0x030000"),
            **device("0000:1b:00.1", "0x10de", "0x040300"),
            **device("0000:05:00.0", "0x10de", "0x068000"),
            **device("0000:00:02.0", "0x8086", "0x030000"),
            "bus/pci/devices/0000:ff:00.0/class": "0x030000\n",
            "bus/pci/devices/0000:fe:00.0/vendor": "0x10de\n",
        },
    )
    assert nvidia_bus_ids(tree) == ("0000:1b:00.0", "0000:cb:00.0")


def test_a_virtual_function_is_no_card(tmp_path: Path) -> None:
    """It is a slice of one."""
    tree = make_tree(tmp_path, device("0000:1b:00.4", "0x10de", "0x030200"))
    (tmp_path / "bus/pci/devices/0000:1b:00.4/physfn").mkdir()
    assert nvidia_bus_ids(tree) == ()


def test_a_machine_without_a_bus_has_none() -> None:
    """Some virtual machines have no PCI at all."""
    assert nvidia_bus_ids(Tree("/nowhere")) == ()
