"""Whether this interpreter, this TensorFlow and this card can do what is asked; each cause is named, none is guessed.

Every way in which TensorFlow ends up computing on the CPU with exit code 0 is an error here, with the reason that
someone can act on. The checks run in the order in which the causes shadow each other.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Tuple

from workloads import cuda, failure
from workloads.emit import Device, Environment
from workloads.spec import Spec
from workloads.untyped import Json, PhysicalDevice, TensorFlow

SONAMES: Mapping[int, Tuple[str, ...]] = {
    11: ("libcudart.so.11.0", "libcublas.so.11", "libcublasLt.so.11", "libcufft.so.10", "libcurand.so.10",
         "libcusolver.so.11", "libcusparse.so.11"),
    12: ("libcudart.so.12", "libcublas.so.12", "libcublasLt.so.12", "libcufft.so.11", "libcurand.so.10",
         "libcusolver.so.11", "libcusparse.so.12"),
    13: ("libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcufft.so.12", "libcurand.so.10",
         "libcusolver.so.12", "libcusparse.so.12"),
}  # fmt: skip
"""Libraries that TensorFlow opens at start, by CUDA major version; cuDNN apart. With one missing it lists no GPU."""

NCCL = "libnccl.so.2"

CPU_BYTES = 2**30
XLA_FLAGS = "TF_XLA_FLAGS"
OLDEST_CACHING_VERSION = (2, 16)


@dataclass(frozen=True)
class Machine:
    """Where probes run, once the checks have passed."""

    kind: str
    devices: Tuple[str, ...]
    """TensorFlow's names of the devices, as ``/GPU:0``; more than one where a step is spread over several."""
    info: Device
    """The first device."""
    driver: Optional[cuda.Driver]
    usable_bytes: int
    """Memory that probes may take on one device: the limit, else what was free at first, 1 GiB on a CPU."""
    seed: int

    @property
    def device(self) -> str:
        """TensorFlow's name of the first device."""
        return self.devices[0]

    @property
    def on_gpu(self) -> bool:
        """Whether the device is a card."""
        return self.kind == "gpu"

    @property
    def capability_major(self) -> int:
        """The card's major compute capability, 0 on a CPU."""
        return int(self.info.compute_capability.partition(".")[0] or 0)


def prepare_environment(spec: Spec) -> None:
    """Set what TensorFlow and CUDA read from the environment when they load; values already set are kept."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    if not spec.cache_dir:
        return
    os.environ.setdefault("CUDA_CACHE_PATH", str(Path(spec.cache_dir) / "cuda"))


def keep_compilations(tf: TensorFlow, cache_dir: str) -> None:
    """Let XLA keep what it compiles in ``cache_dir``; TensorFlow reads the flag at its first operation.

    Versions before 2.16 have the flag, but with it 2.9 fails to compile for a CPU: there nothing is kept.
    """
    version = _version(str(tf.__version__))
    if cache_dir and version and version >= OLDEST_CACHING_VERSION:
        present, flag = os.environ.get(XLA_FLAGS, ""), "--tf_xla_persistent_cache_directory"
        if flag not in present:
            os.environ[XLA_FLAGS] = ("%s %s=%s" % (present, flag, Path(cache_dir) / "xla")).strip()


def import_tensorflow(*, with_keras: bool = False) -> TensorFlow:
    """Import TensorFlow, without Keras unless a request is about it.

    Keras is made unimportable first: TensorFlow brings it along otherwise, at 0.3 to 0.5 s and 20 MB.

    Raises:
        ProbeFailure: there is no TensorFlow, or it does not load.
    """
    if not with_keras:
        sys.modules["keras"] = None  # type: ignore[assignment]  # the documented way to refuse an import
    try:
        return importlib.import_module("tensorflow")
    except ModuleNotFoundError as raised:
        if raised.name == "tensorflow":
            raise failure.error(failure.TENSORFLOW_MISSING, "%s has no module tensorflow" % sys.executable) from raised
        raise failure.classify(raised) from raised
    except ImportError as raised:
        raise _import_failure(str(raised)) from raised


def _import_failure(text: str) -> failure.ProbeFailure:
    library = text.partition(":")[0].strip().split()[-1:] if "cannot open shared object" in text else []
    if library:
        return failure.error(failure.MISSING_LIBRARY + ":%s" % library[0], failure.one_line(text))
    return failure.error(failure.FAILED + ":ImportError", failure.one_line(text))


def environment(tf: TensorFlow) -> Environment:
    """Return the versions of what is installed here; ``tf`` is None where TensorFlow did not load."""
    build: Mapping[str, Json] = tf.sysconfig.get_build_info() if tf is not None else {}
    return Environment(
        python=platform.python_version(),
        tensorflow=str(tf.__version__) if tf is not None else "",
        cuda=str(build.get("cuda_version", "")),
        cudnn=str(build.get("cudnn_version", "")),
        driver=cuda.driver_version(),
    )


def open_machine(tf: TensorFlow, spec: Spec, library: str = cuda.LIBRARY) -> Machine:
    """Check everything, configure TensorFlow for the devices asked for, and return where probes run.

    Raises:
        ProbeFailure: the device cannot be used as asked, with the reason.
    """
    keep_compilations(tf, spec.cache_dir)
    tf.config.set_soft_device_placement(False)
    if spec.threads:
        tf.config.threading.set_intra_op_parallelism_threads(spec.threads)
        tf.config.threading.set_inter_op_parallelism_threads(spec.threads)
    return _open_cpu(tf, spec) if spec.device == "cpu" else _open_gpus(tf, spec, library)


def _open_cpu(tf: TensorFlow, spec: Spec) -> Machine:
    tf.config.set_visible_devices([], "GPU")
    if spec.replicas > 1:
        logical = [tf.config.LogicalDeviceConfiguration() for _ in range(spec.replicas)]
        tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], logical)
    devices = tuple("/CPU:%d" % index for index in range(spec.replicas))
    info = Device(kind="cpu", name=platform.processor() or platform.machine())
    return Machine("cpu", devices, info, None, spec.memory_limit_bytes or CPU_BYTES, spec.seed)


def _open_gpus(tf: TensorFlow, spec: Spec, library: str) -> Machine:
    build: Dict[str, Json] = dict(tf.sysconfig.get_build_info())
    if not build.get("is_cuda_build"):
        raise failure.error(failure.NOT_A_GPU_BUILD, "TensorFlow %s was built without CUDA" % tf.__version__)
    driver = _open_driver(build, library)
    card = _check_cards(driver, spec, build)
    listed = tf.config.list_physical_devices("GPU")
    if len(listed) < spec.replicas:
        missing = missing_libraries(build)
        if missing:
            raise failure.error(
                failure.MISSING_LIBRARY + ":%s" % missing[0], "these fail to load: %s" % ", ".join(missing)
            )
        raise failure.error(
            failure.NO_GPU, "CUDA sees %s (%s) but TensorFlow lists %d of %d GPUs"
            % (card.name, card.uuid, len(listed), spec.replicas),
        )  # fmt: skip
    free = driver.free_bytes() if spec.reserve_all else 0
    devices = tuple("/GPU:%d" % index for index in range(spec.replicas))
    for physical in listed[: spec.replicas]:
        _limit_memory(tf, physical, spec)
    for device in devices:
        _prove_it_runs(tf, device)
    info = Device(
        kind="gpu",
        name=card.name,
        uuid=card.uuid,
        pci_bus_id=card.pci_bus_id,
        compute_capability="%d.%d" % card.capability,
        memory_bytes=card.memory_bytes,
    )
    free = free or driver.free_bytes()
    usable = min(free, spec.memory_limit_bytes) if spec.memory_limit_bytes else free
    return Machine("gpu", devices, info, driver, usable, spec.seed)


def _open_driver(build: Mapping[str, Json], library: str) -> cuda.Driver:
    try:
        driver = cuda.Driver(library)
    except OSError as raised:
        raise failure.error(failure.MISSING_LIBRARY + ":%s" % cuda.LIBRARY, failure.one_line(str(raised))) from raised
    except cuda.CudaError as raised:
        if raised.code == cuda.NO_DEVICE:
            visible = os.environ.get("CUDA_VISIBLE_DEVICES", "(not set)")
            raise failure.error(failure.NO_GPU, "CUDA sees no card; CUDA_VISIBLE_DEVICES is %s" % visible) from raised
        raise failure.classify(raised) from raised
    served, built = driver.cuda_version(), _version(str(build.get("cuda_version", "")))
    if built and not driver_serves(served, built):
        raise failure.error(
            failure.DRIVER_TOO_OLD, "the driver serves CUDA %d.%d, TensorFlow wants %d.%d" % (*served, *built)
        )
    if driver.visible() == 0:
        raise failure.error(failure.NO_GPU, "CUDA sees no card")
    return driver


def driver_serves(served: Tuple[int, int], built: Tuple[int, int]) -> bool:
    """Return whether a driver that serves CUDA ``served`` runs what was built with CUDA ``built``.

    From CUDA 11 on a driver runs every minor version of its major one, and every older one ("minor version
    compatibility" in NVIDIA's CUDA Compatibility guide); before, it had to be at least as new.
    """
    return served[0] >= built[0] if built[0] >= 11 else served >= built


def _check_cards(driver: cuda.Driver, spec: Spec, build: Mapping[str, Json]) -> cuda.Card:
    """Check that the visible cards are those asked for and that TensorFlow has code for each; return the first."""
    if driver.visible() < spec.replicas:
        raise failure.error(
            failure.WRONG_DEVICE, "CUDA sees %d cards, asked for %d" % (driver.visible(), spec.replicas)
        )
    first = driver.card()
    if spec.pci_bus_id and not cuda.same_bus_id(first.pci_bus_id, spec.pci_bus_id):
        raise failure.error(failure.WRONG_DEVICE, "CUDA opened %s, asked for %s" % (first.pci_bus_id, spec.pci_bus_id))
    for ordinal, uuid in enumerate((spec.gpu_uuid, *spec.companion_uuids)):
        _check_card(driver.card(ordinal), uuid, build)
    return first


def _check_card(card: cuda.Card, uuid: str, build: Mapping[str, Json]) -> None:
    if uuid and card.uuid.lower() != uuid.lower():
        raise failure.error(failure.WRONG_DEVICE, "CUDA opened %s, asked for %s" % (card.uuid, uuid))
    built = [str(item) for item in build.get("cuda_compute_capabilities", ())]
    if built and not has_code_for(card.capability, built):
        raise failure.error(
            failure.COMPUTE_CAPABILITY,
            "%s has compute capability %d.%d, TensorFlow holds code for %s only"
            % (card.name, *card.capability, ", ".join(built)),
        )


def has_code_for(capability: Tuple[int, int], built: Sequence[str]) -> bool:
    """Return whether a build for the capabilities ``built`` (as ``sm_80``, ``compute_90``) has native code for a card.

    Native code runs on its own major version from its minor version on. A newer major version could only have the
    intermediate code compiled at run time, and the CUDA libraries of that build have no kernels for it either: what
    would then be measured is not the card.
    """
    for item in built:
        digits = item.rpartition("_")[2].rstrip("af")
        if digits.isdigit() and int(digits[:-1]) == capability[0] and int(digits[-1]) <= capability[1]:
            return True
    return False


def missing_libraries(build: Mapping[str, Json]) -> List[str]:
    """Return the names of the libraries that TensorFlow opens at start and that do not load."""
    version = _version(str(build.get("cuda_version", "")))
    names = SONAMES.get(version[0], ()) if version else ()
    cudnn = str(build.get("cudnn_version", "")).partition(".")[0]
    if cudnn.isdigit():
        names += ("libcudnn.so.%s" % cudnn,)
    return [name for name in names if not _loads(name)]


def communication_failure(raised: Exception, library: str = NCCL) -> failure.ProbeFailure:
    """Return what an error of a step over several cards means.

    TensorFlow opens NCCL at its first use, and says no more than that a call failed where it is not there; older
    versions have it built in.
    """
    cause = failure.classify(raised)
    if cause.reason.startswith(failure.FAILED) and not _loads(library):
        return failure.error(failure.MISSING_LIBRARY + ":%s" % library, cause.detail)
    return cause


def _loads(soname: str) -> bool:
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def _version(text: str) -> Optional[Tuple[int, int]]:
    parts = text.split(".")
    if len(parts) < 2 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    return int(parts[0]), int(parts[1])


def _limit_memory(tf: TensorFlow, physical: PhysicalDevice, spec: Spec) -> None:
    if spec.memory_limit_bytes:
        limit = tf.config.LogicalDeviceConfiguration(memory_limit=spec.memory_limit_bytes / 2**20)
        tf.config.set_logical_device_configuration(physical, [limit])
    elif not spec.reserve_all:
        tf.config.experimental.set_memory_growth(physical, True)


def _prove_it_runs(tf: TensorFlow, device: str) -> None:
    try:
        with tf.device(device):
            product = tf.linalg.matmul(tf.fill([64, 64], 2.0), tf.fill([64, 64], 0.5))
        answer = float(tf.reduce_sum(product))
    except tf.errors.OpError as raised:
        raise failure.classify(raised) from raised
    except RuntimeError as raised:
        raise failure.error(
            failure.CUDA_INIT_FAILED + ":%s" % type(raised).__name__, failure.one_line(str(raised))
        ) from raised
    if not product.device.endswith(device[1:]):
        raise failure.error(
            failure.RAN_ON_CPU, "a product asked of %s ran on %s" % (device[1:], product.device or "no device")
        )
    if answer != 64.0**3:
        raise failure.wrong_answer(
            failure.EXACT_MISMATCH, "a 64 x 64 product sums to %r instead of %r" % (answer, 64.0**3)
        )
