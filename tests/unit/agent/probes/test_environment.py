"""What a child sees of the agent's environment: nothing that was not meant for it."""

from pathlib import Path

from agent.probes.environment import Interpreter, child_environment

HOME = Path("/run/probe")


def interpreter(*paths: Path, python_path: tuple[str, ...] = ()) -> Interpreter:
    """Return an interpreter that finds packages in ``paths``."""
    return Interpreter("/usr/bin/python3", (3, 11, 2), tuple(map(str, paths)), python_path)


def test_environment_is_built_from_nothing() -> None:
    """Of the agent's own variables only the search paths arrive."""
    inherited = {"PATH": "/opt/bin", "LD_LIBRARY_PATH": "/usr/local/nvidia/lib64", "SECRET": "x", "PYTHONPATH": "/evil"}
    environment = child_environment(interpreter(), "GPU-a", 4, HOME, inherited)
    assert environment["PATH"] == "/opt/bin"
    assert environment["LD_LIBRARY_PATH"] == "/usr/local/nvidia/lib64"
    assert not {"SECRET", "PYTHONPATH"} & environment.keys()
    assert environment["HOME"] == environment["TMPDIR"] == "/run/probe"


def test_settings_of_nccl_reach_the_child() -> None:
    """Whoever forbids a way between cards, because it harms them there, is heeded."""
    found = child_environment(interpreter(), "GPU-a,GPU-b", 4, HOME, {"NCCL_NVLS_ENABLE": "0", "XNCCL_DEBUG": "INFO"})
    assert found["NCCL_NVLS_ENABLE"] == "0"
    assert "XNCCL_DEBUG" not in found


def test_one_card_is_visible_by_uuid_in_bus_order() -> None:
    """CUDA's own order of cards plays no part."""
    environment = child_environment(interpreter(), "GPU-a", 4, HOME, {})
    assert (environment["CUDA_VISIBLE_DEVICES"], environment["CUDA_DEVICE_ORDER"]) == ("GPU-a", "PCI_BUS_ID")


def test_no_card_is_visible_on_the_cpu() -> None:
    """An empty list hides every card; a variable left out would show them all."""
    assert child_environment(interpreter(), "", 4, HOME, {})["CUDA_VISIBLE_DEVICES"] == ""


def test_cuda_wheels_are_put_on_loader_and_program_path(tmp_path: Path) -> None:
    """Libraries that came beside TensorFlow come before the machine's own."""
    for name in ("cublas/lib", "cusolver/lib", "cuda_nvcc/bin"):
        (tmp_path / "nvidia" / name).mkdir(parents=True)
    found = child_environment(interpreter(tmp_path, tmp_path), "GPU-a", 4, HOME, {"LD_LIBRARY_PATH": "/old"})
    assert found["LD_LIBRARY_PATH"] == f"{tmp_path}/nvidia/cublas/lib:{tmp_path}/nvidia/cusolver/lib:/old"
    assert found["PATH"].startswith(f"{tmp_path}/nvidia/cuda_nvcc/bin:")


def test_threads_are_bounded_only_where_asked() -> None:
    """0 leaves the number of threads to the libraries."""
    assert child_environment(interpreter(), "", 2, HOME, {})["OMP_NUM_THREADS"] == "2"
    assert "OMP_NUM_THREADS" not in child_environment(interpreter(), "", 0, HOME, {})


def test_package_directories_replace_full_isolation() -> None:
    """Named directories need PYTHONPATH, which ``-I`` would ignore."""
    named = interpreter(python_path=("/a", "/b"))
    assert child_environment(named, "", 0, HOME, {})["PYTHONPATH"] == "/a:/b"
    assert named.argv == ("/usr/bin/python3", "-s")
    assert interpreter().argv == ("/usr/bin/python3", "-I")
