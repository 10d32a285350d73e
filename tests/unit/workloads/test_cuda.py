"""The CUDA driver's answers, from a library of one card."""

from pathlib import Path

import pytest

from tests.support.fakecuda import PCI_BUS_ID, UUID, build_library
from workloads import cuda


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> cuda.Driver:
    """Return a driver with one card."""
    return cuda.Driver(str(build_library(tmp_path_factory.mktemp("cuda"))))


def test_tells_the_card(driver: cuda.Driver) -> None:
    """Identity, capability and size arrive in our units."""
    assert driver.card() == cuda.Card(UUID, PCI_BUS_ID, "NVIDIA Fake", (9, 0), 80 * 2**30)
    assert (driver.cuda_version(), driver.visible()) == ((13, 0), 1)


def test_tells_free_memory(driver: cuda.Driver) -> None:
    """In bytes, through the context that is there."""
    assert driver.free_bytes() == 70 * 2**30


@pytest.mark.parametrize(("address", "pinned"), [(4096, False), (8192, True), (12288, False)])
def test_tells_page_locked_memory(driver: cuda.Driver, address: int, *, pinned: bool) -> None:
    """Memory that the driver does not know, or knows as the device's, is not page-locked host memory."""
    assert driver.is_pinned(address) is pinned


def test_a_failed_call_has_its_name(driver: cuda.Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says which call, and what it answered."""
    monkeypatch.setenv("FAKE_CUDA_cuDeviceGet", "100")
    with pytest.raises(cuda.CudaError, match="cuDeviceGet: CUDA_ERROR_NO_DEVICE \\(100\\)") as caught:
        driver.card()
    assert (caught.value.call, caught.value.code) == ("cuDeviceGet", 100)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("0000:4B:00.0", "00000000:4b:00.0", True),
        ("0000:4B:00.0", "0001:4B:00.0", False),
        ("nonsense", "nonsense", False),
    ],
)
def test_bus_ids_are_compared_as_numbers(one: str, other: str, *, same: bool) -> None:
    """Width and case do not matter; what is no bus id equals nothing."""
    assert cuda.same_bus_id(one, other) is same


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (x)\n", "580.159.04"),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.82  Thu\nGCC version: gcc 12.2.0\n", "470.82"),
        ("something else\n", ""),
    ],
)
def test_reads_the_kernel_modules_version(tmp_path: Path, text: str, version: str) -> None:
    """As the module's file in /proc says it, empty where it does not."""
    file = tmp_path / "version"
    file.write_text(text)
    assert cuda.driver_version(str(file)) == version


def test_no_kernel_module(tmp_path: Path) -> None:
    """Absent means unknown."""
    assert cuda.driver_version(str(tmp_path / "absent")) == ""
