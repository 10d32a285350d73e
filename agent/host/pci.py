"""NVIDIA cards as the PCI bus has them, with or without a driver."""

from typing import Final

from agent.host.files import Tree

_DEVICES: Final = "bus/pci/devices"
_NVIDIA: Final = "0x10de"
_DISPLAY_CLASSES: Final = ("0x0300", "0x0302")  # VGA and 3D controllers; not audio, bridges, NVSwitches


def nvidia_bus_ids(sys: Tree) -> tuple[str, ...]:
    """Return the bus ids of NVIDIA's display devices in order, as ``0000:1b:00.0``; empty without a PCI bus."""
    try:
        names = sys.names(_DEVICES)
    except OSError:
        return ()
    return tuple(sorted(name.lower() for name in names if _is_nvidia_display(sys, name)))


def _is_nvidia_display(sys: Tree, name: str) -> bool:
    vendor = sys.read_or_none(f"{_DEVICES}/{name}/vendor") or ""
    if vendor.strip().lower() != _NVIDIA:
        return False
    if sys.has_directory(f"{_DEVICES}/{name}/physfn"):  # a virtual function is a slice of a card
        return False
    device_class = sys.read_or_none(f"{_DEVICES}/{name}/class") or ""
    return device_class.strip().lower().startswith(_DISPLAY_CLASSES)
