"""The CUDA driver, asked directly: which card is visible, what the driver serves. Creates no context by itself."""

from __future__ import annotations

import ctypes
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Iterator, Optional, Tuple

LIBRARY = "libcuda.so.1"
DRIVER_VERSION_FILE = "/proc/driver/nvidia/version"
NO_DEVICE = 100
CArgument = Any
"""A value that ctypes passes to C."""
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_MEMORY_TYPE, _MEMORY_TYPE_HOST = 2, 1


class CudaError(Exception):
    """A driver call failed: ``call``, its ``code`` and the code's ``name``."""

    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__("%s: %s (%d)" % (call, name, code))
        self.call = call
        self.code = code
        self.name = name


@dataclass(frozen=True)
class Card:
    """One visible card as CUDA sees it."""

    uuid: str
    """With its ``GPU-``."""
    pci_bus_id: str
    name: str
    capability: Tuple[int, int]
    memory_bytes: int


class Driver:
    """libcuda, initialised."""

    def __init__(self, library: str = LIBRARY) -> None:
        """Load and initialise the driver library of that name.

        Raises:
            OSError: the library does not load.
            CudaError: it does not initialise.
        """
        self._library = ctypes.CDLL(library)
        self._call("cuInit", 0)

    def cuda_version(self) -> Tuple[int, int]:
        """Return the newest CUDA version that the driver serves.

        Raises:
            CudaError: the driver does not tell.
        """
        version = ctypes.c_int()
        self._call("cuDriverGetVersion", ctypes.byref(version))
        return version.value // 1000, version.value % 1000 // 10

    def visible(self) -> int:
        """Return how many cards this process may use.

        Raises:
            CudaError: the driver does not tell.
        """
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def card(self, ordinal: int = 0) -> Card:
        """Return the visible card of that number, the first by default.

        Raises:
            CudaError: there is none, or the driver does not tell.
        """
        device = self._device(ordinal)
        uuid, bus, name = (ctypes.create_string_buffer(size) for size in (16, 64, 256))
        memory = ctypes.c_size_t()
        newer = hasattr(self._library, "cuDeviceGetUuid_v2")
        self._call("cuDeviceGetUuid_v2" if newer else "cuDeviceGetUuid", uuid, device)
        self._call("cuDeviceGetPCIBusId", bus, len(bus), device)
        self._call("cuDeviceGetName", name, len(name), device)
        self._call("cuDeviceTotalMem_v2", ctypes.byref(memory), device)
        return Card(
            uuid=format_uuid(uuid.raw),
            pci_bus_id=bus.value.decode("ascii", "replace"),
            name=name.value.decode("utf-8", "replace"),
            capability=(self._attribute(_CAPABILITY_MAJOR, device), self._attribute(_CAPABILITY_MINOR, device)),
            memory_bytes=memory.value,
        )

    def free_bytes(self) -> int:
        """Return the first card's free memory; needs, and shares, the context that TensorFlow made.

        Raises:
            CudaError: the driver does not tell.
        """
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        with self._context():
            self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def is_pinned(self, address: int) -> bool:
        """Return whether host memory at ``address`` is page-locked and known to the driver."""
        kind = ctypes.c_uint()
        with self._context():
            try:
                self._call("cuPointerGetAttribute", ctypes.byref(kind), _MEMORY_TYPE, ctypes.c_void_p(address))
            except CudaError:
                return False
        return kind.value == _MEMORY_TYPE_HOST

    @contextmanager
    def _context(self) -> Iterator[None]:
        device, context = self._device(), ctypes.c_void_p()
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        try:
            self._call("cuCtxPushCurrent_v2", context)
            try:
                yield
            finally:
                self._call("cuCtxPopCurrent_v2", ctypes.byref(context))
        finally:
            self._call("cuDevicePrimaryCtxRelease_v2", device)

    def _device(self, ordinal: int = 0) -> ctypes.c_int:
        device = ctypes.c_int()
        self._call("cuDeviceGet", ctypes.byref(device), ordinal)
        return device

    def _attribute(self, attribute: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("cuDeviceGetAttribute", ctypes.byref(value), attribute, device)
        return value.value

    def _call(self, call: str, *arguments: CArgument) -> None:
        code = getattr(self._library, call)(*arguments)
        if code:
            raise CudaError(call, code, self._error_name(code))

    def _error_name(self, code: int) -> str:
        name = ctypes.c_char_p()
        self._library.cuGetErrorName(code, ctypes.byref(name))
        return name.value.decode("ascii", "replace") if name.value else "CUDA_ERROR_%d" % code


def format_uuid(raw: bytes) -> str:
    """Return the 16 bytes of a card's UUID as NVML writes them, ``GPU-`` in front."""
    text = raw.hex()
    return "GPU-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def same_bus_id(one: str, other: str) -> bool:
    """Return whether two PCI ids name the same place, whatever the width of their domain."""
    return _bus_id_numbers(one) == _bus_id_numbers(other) is not None


def _bus_id_numbers(text: str) -> Optional[Tuple[int, ...]]:
    parts = re.fullmatch(r"([0-9a-fA-F]+):([0-9a-fA-F]+):([0-9a-fA-F]+)\.([0-9a-fA-F]+)", text)
    return tuple(int(part, 16) for part in parts.groups()) if parts else None


def driver_version(path: str = DRIVER_VERSION_FILE) -> str:
    """Return the kernel driver's version, empty where it is not told."""
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text)
    return found.group(1) if found else ""
