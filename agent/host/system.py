"""Which kernel and system this is, and what it runs under; read once."""

import os
import re
from typing import Final

from agent.host.collector import NothingHereError
from agent.host.files import Tree
from agent.model.metrics import Metric, Sample
from agent.model.text import clean_label

_CPUINFO_LIMIT_BYTES: Final = 1 << 14  # the first CPU is enough
_FLAGS = re.compile(r"^flags\s*:(.*)$", re.MULTILINE)
_PRETTY_NAME = re.compile(r"""^PRETTY_NAME=["']?(.*?)["']?$""", re.MULTILINE)
_HYPERVISORS: Final = (
    ("xen", "xen"),
    ("vmware", "vmware"),
    ("microsoft", "hyperv"),
    ("innotek", "virtualbox"),
    ("parallels", "parallels"),
    ("qemu", "kvm"),
    ("amazon", "kvm"),
    ("google", "kvm"),
    ("openstack", "kvm"),
    ("red hat", "kvm"),
)
"""Words in the vendor's name, and which hypervisor it ships."""


class System:
    """Reads kernel release and /etc/os-release."""

    name: Final = "system"
    metrics: Final = (
        Metric("heatsoak_host_info", "Kernel and operating system.", "gauge", ("kernel", "os", "architecture")),
    )

    def __init__(self, proc: Tree, etc: Tree) -> None:
        """Take the host's /proc and the /etc that the agent sees."""
        self._proc = proc
        self._etc = etc
        self._known: list[Sample] = []

    def collect(self) -> list[Sample]:
        """Return one sample 1 with kernel, system (empty where unnamed) and architecture."""
        if not self._known:
            pretty = _PRETTY_NAME.search(self._etc.read_or_none("os-release") or "")
            kernel = self._proc.read("sys/kernel/osrelease").strip()
            labels = (kernel, pretty[1] if pretty else "", os.uname().machine)
            self._known = [Sample("heatsoak_host_info", 1, tuple(clean_label(label) for label in labels))]
        return self._known


class Hypervisor:
    """Asks CPU, Xen and firmware whether this is a virtual machine, and whose."""

    name: Final = "hypervisor"
    metrics: Final = (
        Metric(
            "heatsoak_host_hypervisor_info",
            "What the machine runs under: none, a hypervisor, or unknown for one without a name.",
            "gauge",
            ("hypervisor", "vendor", "product"),
        ),
    )

    def __init__(self, proc: Tree, sys: Tree) -> None:
        """Take the host's trees."""
        self._proc = proc
        self._sys = sys
        self._known: list[Sample] = []

    def collect(self) -> list[Sample]:
        """Return one sample 1 with hypervisor, vendor and product.

        Raises:
            NothingHereError: the CPU does not say whether there is a hypervisor, as on ARM.
        """
        if not self._known:
            vendor = (self._sys.read_or_none("class/dmi/id/sys_vendor") or "").strip()
            product = (self._sys.read_or_none("class/dmi/id/product_name") or "").strip()
            labels = (self._name(vendor), vendor, product)
            self._known = [Sample("heatsoak_host_hypervisor_info", 1, tuple(clean_label(label) for label in labels))]
        return self._known

    def _name(self, vendor: str) -> str:
        if xen := self._sys.read_or_none("hypervisor/type"):
            return xen.strip()
        flags = _FLAGS.search(self._proc.read("cpuinfo", _CPUINFO_LIMIT_BYTES))
        if flags is None:
            raise NothingHereError(f"a CPU of {os.uname().machine} does not say whether it runs under a hypervisor")
        if "hypervisor" not in flags[1].split():
            return "none"
        return next((name for word, name in _HYPERVISORS if word in vendor.lower()), "unknown")
