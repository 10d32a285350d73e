"""A CUDA driver library, and a TensorFlow that says what a build says, for the checks before a probe."""

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

SOURCE = Path(__file__).with_name("fakecuda.c")
UUID = "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f"
SECOND_UUID = "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f"
PCI_BUS_ID = "0000:4B:00.0"
BUILD: Mapping[str, object] = {
    "is_cuda_build": True,
    "cuda_version": "12.5.1",
    "cudnn_version": "9",
    "cuda_compute_capabilities": ["sm_60", "sm_70", "sm_80", "sm_89", "compute_90"],
}


def build_library(directory: Path) -> Path:
    """Compile the library into ``directory`` and return its path."""
    path = directory / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", path, SOURCE], check=True)
    return path


class Scope:
    """What ``tf.device`` gives."""

    def __enter__(self) -> None:
        """Enter."""

    def __exit__(self, *_: object) -> None:
        """Leave."""


class Product:
    """The tensor of the proving operation."""

    def __init__(self, device: str) -> None:
        """Say which device it was made on."""
        self.device = device


def fake_tensorflow(
    build: Mapping[str, object] = BUILD,
    *,
    gpus: int = 1,
    ran_on: str = "",
    answer: float = 64.0**3,
) -> SimpleNamespace:
    """Return what stands for the module ``tensorflow`` of a build with those facts.

    Operations run where they are asked to, unless ``ran_on`` names another device.
    """
    calls: list[tuple[str, object]] = []
    scopes: list[str] = []

    def scope(device: str) -> Scope:
        scopes.append(device)
        return Scope()

    def note(name: str) -> object:
        return lambda *arguments, **_: calls.append((name, arguments))

    config = SimpleNamespace(
        set_soft_device_placement=note("soft_placement"),
        set_visible_devices=note("visible"),
        set_logical_device_configuration=note("limit"),
        LogicalDeviceConfiguration=lambda memory_limit=None: memory_limit,
        threading=SimpleNamespace(
            set_intra_op_parallelism_threads=note("intra"), set_inter_op_parallelism_threads=note("inter")
        ),
        experimental=SimpleNamespace(set_memory_growth=note("growth")),
        list_physical_devices=lambda kind: [f"{kind.lower()}:{index}" for index in range(gpus)],
    )
    return SimpleNamespace(
        __version__="2.21.0",
        calls=calls,
        config=config,
        sysconfig=SimpleNamespace(get_build_info=lambda: dict(build)),
        device=scope,
        fill=lambda *_: None,
        linalg=SimpleNamespace(matmul=lambda *_: Product(ran_on or scopes[-1])),
        reduce_sum=lambda _: answer,
        errors=SimpleNamespace(OpError=ZeroDivisionError),
    )
