"""Each way in which a card cannot be probed has its own reason."""

import os
import sys
from pathlib import Path

import pytest

from tests.support.fakecuda import BUILD, PCI_BUS_ID, SECOND_UUID, UUID, build_library, fake_tensorflow
from workloads import failure, precheck
from workloads.spec import Request, Spec


def spec_for(**fields: object) -> Spec:
    """Return a specification for a card."""
    return Spec(**{"version": 1, "device": "gpu", "requests": (Request("matmul"),), **fields})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the path of a driver library of one healthy card."""
    return str(build_library(tmp_path_factory.mktemp("cuda")))


def reason_of(library: str, tf: object, spec: Spec) -> tuple[str, str]:
    """Return how the check ends, status and reason."""
    with pytest.raises(failure.ProbeFailure) as caught:
        precheck.open_machine(tf, spec, library)
    return caught.value.status, caught.value.reason


def test_a_fit_card_is_opened(library: str) -> None:
    """The machine tells the card as CUDA sees it; memory grows; nothing falls back to the CPU."""
    tf = fake_tensorflow()
    machine = precheck.open_machine(tf, spec_for(gpu_uuid=UUID.upper().replace("GPU", "GPU"), threads=3), library)
    assert (machine.info.uuid, machine.info.pci_bus_id, machine.info.compute_capability) == (UUID, PCI_BUS_ID, "9.0")
    assert (machine.on_gpu, machine.capability_major, machine.usable_bytes) == (True, 9, 70 * 2**30)
    assert ("soft_placement", (False,)) in tf.calls
    assert ("growth", ("gpu:0", True)) in tf.calls
    assert ("intra", (3,)) in tf.calls


def test_a_limit_plays_a_smaller_card(library: str) -> None:
    """The allocator gets the limit, and probes size themselves by it."""
    tf = fake_tensorflow()
    machine = precheck.open_machine(tf, spec_for(memory_limit_bytes=8 * 2**30), library)
    assert machine.usable_bytes == 8 * 2**30
    assert ("limit", ("gpu:0", [8192.0])) in tf.calls
    assert not [call for call in tf.calls if call[0] == "growth"]


def test_the_cpu_is_used_only_where_asked(library: str) -> None:
    """On the CPU no card is visible, and no driver is asked."""
    tf = fake_tensorflow()
    machine = precheck.open_machine(tf, spec_for(device="cpu"), library + ".absent")
    assert (machine.kind, machine.device, machine.capability_major) == ("cpu", "/CPU:0", 0)
    assert ("visible", ([], "GPU")) in tf.calls


def test_a_build_without_cuda(library: str) -> None:
    """A CPU wheel is named as such."""
    assert reason_of(library, fake_tensorflow({"is_cuda_build": False}), spec_for()) == ("error", "not_a_gpu_build")


def test_no_driver_library(library: str) -> None:
    """Without libcuda the library is named."""
    assert reason_of(library + ".absent", fake_tensorflow(), spec_for()) == ("error", "missing_library:libcuda.so.1")


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("FAKE_CUDA_cuInit", "100", "no_gpu"),
        ("FAKE_CUDA_cuInit", "803", "cuda_init_failed:CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ("FAKE_CUDA_cuInit", "999", "cuda_init_failed:CUDA_ERROR_999"),
        ("FAKE_CUDA_COUNT", "0", "no_gpu"),
        ("FAKE_CUDA_VERSION", "11080", "driver_too_old"),
        ("FAKE_CUDA_MAJOR", "12", "compute_capability"),
    ],
)
def test_the_driver_answers_otherwise(
    library: str, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, reason: str
) -> None:
    """Each answer of the driver has its reason."""
    monkeypatch.setenv(variable, value)
    assert reason_of(library, fake_tensorflow(), spec_for()) == ("error", reason)


def test_whole_cards_are_taken_where_asked(library: str) -> None:
    """TensorFlow's default is left alone, and probes size themselves by what was free before."""
    tf = fake_tensorflow()
    machine = precheck.open_machine(tf, spec_for(reserve_all=True), library)
    assert machine.usable_bytes == 70 * 2**30
    assert not [call for call in tf.calls if call[0] in ("growth", "limit")]


def test_every_card_of_a_job_is_checked_and_set(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The identity of each, memory on each, a proof on each."""
    monkeypatch.setenv("FAKE_CUDA_COUNT", "2")
    pair = {"gpu_uuid": UUID, "replicas": 2}
    tf = fake_tensorflow(gpus=2)
    machine = precheck.open_machine(tf, spec_for(companion_uuids=(SECOND_UUID,), **pair), library)
    assert (machine.devices, machine.device, machine.info.uuid) == (("/GPU:0", "/GPU:1"), "/GPU:0", UUID)
    assert [call[1] for call in tf.calls if call[0] == "growth"] == [("gpu:0", True), ("gpu:1", True)]
    stranger = spec_for(companion_uuids=("GPU-ffffffff",), **pair)
    assert reason_of(library, fake_tensorflow(gpus=2), stranger) == ("error", "wrong_device")
    third = spec_for(companion_uuids=(SECOND_UUID, "GPU-2"), gpu_uuid=UUID, replicas=3)
    assert reason_of(library, fake_tensorflow(gpus=2), third) == ("error", "wrong_device")
    known = {**BUILD, "cuda_version": "", "cudnn_version": ""}
    one_listed = fake_tensorflow(known, gpus=1)
    assert reason_of(library, one_listed, spec_for(companion_uuids=(SECOND_UUID,), **pair)) == ("error", "no_gpu")
    elsewhere = fake_tensorflow(gpus=2, ran_on="/job:localhost/replica:0/task:0/device:GPU:0")
    assert reason_of(library, elsewhere, spec_for(companion_uuids=(SECOND_UUID,), **pair)) == ("error", "ran_on_cpu")


def test_the_cpu_is_divided_where_asked(library: str) -> None:
    """Replicas on a CPU are logical devices of it."""
    tf = fake_tensorflow()
    machine = precheck.open_machine(tf, spec_for(device="cpu", replicas=2), library)
    assert machine.devices == ("/CPU:0", "/CPU:1")
    assert ("limit", ("cpu:0", [None, None])) in tf.calls


@pytest.mark.parametrize("asked", [{"gpu_uuid": "GPU-ffffffff"}, {"pci_bus_id": "00000000:4C:00.0"}])
def test_another_card_than_asked_for(library: str, asked: dict[str, str]) -> None:
    """A mismatch of UUID or place discards the run before TensorFlow touches the card."""
    tf = fake_tensorflow()
    assert reason_of(library, tf, spec_for(**asked)) == ("error", "wrong_device")
    assert not [call for call in tf.calls if call[0] in ("growth", "limit")]


def test_the_place_is_compared_as_numbers(library: str) -> None:
    """NVML writes the domain wider than CUDA does."""
    assert precheck.open_machine(fake_tensorflow(), spec_for(pci_bus_id="00000000:4b:00.0"), library).on_gpu


def test_libraries_that_do_not_load_are_named(library: str) -> None:
    """TensorFlow lists no card: what it could not open is the reason, by name."""
    build = {**BUILD, "cuda_version": "", "cudnn_version": "99.1"}
    assert reason_of(library, fake_tensorflow(build, gpus=0), spec_for()) == ("error", "missing_library:libcudnn.so.99")


def test_no_card_listed_for_no_known_cause(library: str) -> None:
    """With every library there, it stays at what is known."""
    build = {**BUILD, "cuda_version": "", "cudnn_version": ""}
    assert reason_of(library, fake_tensorflow(build, gpus=0), spec_for()) == ("error", "no_gpu")


def test_an_operation_that_ran_elsewhere(library: str) -> None:
    """The proving operation's own device decides."""
    tf = fake_tensorflow(ran_on="/job:localhost/replica:0/task:0/device:CPU:0")
    assert reason_of(library, tf, spec_for()) == ("error", "ran_on_cpu")


def test_an_operation_that_came_out_wrong(library: str) -> None:
    """Even the proving operation is checked."""
    assert reason_of(library, fake_tensorflow(answer=1.0), spec_for()) == ("wrong_answer", "exact_mismatch")


@pytest.mark.parametrize(
    ("served", "built", "fits"),
    [
        ((13, 0), (12, 5), True),
        ((12, 0), (12, 5), True),
        ((11, 8), (12, 5), False),
        ((11, 0), (11, 2), True),
        ((10, 1), (10, 2), False),
        ((10, 2), (10, 2), True),
    ],
)
def test_minor_versions_are_compatible_since_cuda_11(
    served: tuple[int, int], built: tuple[int, int], *, fits: bool
) -> None:
    """A driver serves every minor version of its major one, from 11 on."""
    assert precheck.driver_serves(served, built) is fits


@pytest.mark.parametrize(
    ("capability", "built", "fits"),
    [
        ((9, 0), ["sm_80", "compute_90"], True),
        ((8, 6), ["sm_80"], True),
        ((8, 0), ["sm_86"], False),
        ((9, 0), ["sm_70", "sm_75", "compute_80"], False),
        ((12, 0), ["sm_89", "compute_90"], False),
        ((12, 0), ["sm_120a"], True),
        ((7, 5), ["sm_70"], True),
        ((3, 5), [], False),
    ],
)
def test_native_code_is_wanted(capability: tuple[int, int], built: list[str], *, fits: bool) -> None:
    """TensorFlow 2.9, built up to compute_80, has nothing for a card newer than Ampere."""
    assert precheck.has_code_for(capability, built) is fits


def test_missing_nccl_is_named() -> None:
    """TensorFlow says that a collective failed; that the library is not there is why. Memory is another matter."""
    failed = RuntimeError("Collective ops is aborted by: unhandled system error")
    named = precheck.communication_failure(failed, "libabsent.so.2")
    assert (named.status, named.reason) == ("error", "missing_library:libabsent.so.2")
    assert "unhandled system error" in named.detail
    assert precheck.communication_failure(failed, "libc.so.6").reason == "failed:RuntimeError"
    assert precheck.communication_failure(MemoryError("none"), "libabsent.so.2").reason == "oom"


def test_caches_are_kept_where_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The compilers' caches lie in the directory named; flags that someone set stay."""
    for name in ("CUDA_CACHE_PATH", "TF_CPP_MIN_LOG_LEVEL"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("TF_XLA_FLAGS", "--tf_xla_min_cluster_size=2")
    tf = fake_tensorflow()
    precheck.prepare_environment(spec_for())
    precheck.keep_compilations(tf, "")
    assert os.environ["TF_XLA_FLAGS"] == "--tf_xla_min_cluster_size=2"
    assert "CUDA_CACHE_PATH" not in os.environ
    for directory in (str(tmp_path), "/elsewhere"):
        precheck.prepare_environment(spec_for(cache_dir=directory))
        precheck.keep_compilations(tf, directory)
    assert os.environ["TF_XLA_FLAGS"] == (
        f"--tf_xla_min_cluster_size=2 --tf_xla_persistent_cache_directory={tmp_path}/xla"
    )
    assert os.environ["CUDA_CACHE_PATH"] == f"{tmp_path}/cuda"


def test_old_versions_keep_no_compilations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """TensorFlow 2.9 has the flag and breaks with it."""
    monkeypatch.setenv("TF_XLA_FLAGS", "")
    tf = fake_tensorflow()
    tf.__version__ = "2.9.0"
    precheck.keep_compilations(tf, str(tmp_path))
    assert os.environ["TF_XLA_FLAGS"] == ""


def test_an_interpreter_without_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """The missing module is told from a broken one."""
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setitem(sys.modules, "keras", None)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(failure.ProbeFailure) as caught:
        precheck.import_tensorflow()
    assert caught.value.reason == "tensorflow_missing"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "libcudart.so.11.0: cannot open shared object file: No such file or directory",
            "missing_library:libcudart.so.11.0",
        ),
        ("/x/lib.so: undefined symbol: foo", "failed:ImportError"),
    ],
)
def test_a_tensorflow_that_does_not_load(text: str, reason: str) -> None:
    """The library that the loader missed is named."""
    assert precheck._import_failure(text).reason == reason
