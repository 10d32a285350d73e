"""The image, built by buildah on a local base and run as a runtime would: uid 10001 and a root it cannot write."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.fakenvml.build import build
from tests.support.agent import ROOT, eventually
from tests.support.container import STORE, Container, base_image, buildah, configuration, running_container
from tests.support.fakenvml import SCENARIOS
from tests.support.wheels import wheels

pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

_CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
_PACKAGES_OF_THE_IMAGE = "/usr/local/lib/python3.11/dist-packages"
_UID = 10001


def _build(target: str) -> str:
    packages = wheels("tensorflow-cpu", "setuptools", "wheel", "cyclonedx-bom", "h2")
    base = base_image()
    arguments = {"BASE": base, "AGENT_BASE": base, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/wheels"}
    name = f"localhost/heatsoak-test-{target}"
    buildah(
        "bud", "--layers", "--format", "docker", "--isolation=chroot", "--volume", f"{packages}:/wheels:ro",
        "--file", str(_CONTAINERFILE), "--target", target, "--tag", name,
        *(word for key, value in arguments.items() for word in ("--build-arg", f"{key}={value}")), str(ROOT),
    )  # fmt: skip
    return name


@pytest.fixture(scope="module")
def image() -> str:
    """Build the image with probes."""
    return _build("heatsoak")


@pytest.fixture(scope="module")
def agent_image() -> str:
    """Build the image without."""
    return _build("agent")


@pytest.fixture
def mounts(tmp_path: Path) -> dict[str, tuple[Path, str]]:
    """Return the fake driver, eight cards, and a state directory of the image's user."""
    state = tmp_path / "state"
    state.mkdir()
    subprocess.run(["chown", f"{_UID}:{_UID}", str(state)], check=True)
    return {
        "/opt/fake/lib": (build(), "ro"),
        "/opt/fake/scenarios": (SCENARIOS, "ro"),
        "/var/lib/heatsoak": (state, "rw"),
    }


def _environ(**more: str) -> dict[str, str]:
    return {
        "LD_LIBRARY_PATH": "/opt/fake/lib",
        "FAKE_NVML_SCENARIO": "/opt/fake/scenarios/eight.scenario",
        "HEATSOAK_AGENT_TICK_S": "0.5",
        **more,
    }


def _values(container: Container, name: str) -> list[tuple[dict[str, str], float]]:
    families = text_string_to_metric_families(container.get("/metrics"))
    return [(sample.labels, sample.value) for family in families for sample in family.samples if sample.name == name]


def _runs(container: Container) -> dict[tuple[str, str], float]:
    rows = _values(container, "heatsoak_probe_runs_total")
    return {(labels["status"], labels["reason"]): value for labels, value in rows if value > 0}


@pytest.mark.parametrize("target", ["image", "agent_image"])
def test_the_image_says_how_it_is_run(target: str, request: pytest.FixtureRequest) -> None:
    """Not root, an entrypoint that is a program and no shell, a health check, a title and a licence."""
    config = configuration(request.getfixturevalue(target))
    assert config["User"] == f"{_UID}:{_UID}"
    assert (config["Entrypoint"], config["Cmd"]) == (["/opt/heatsoak/bin/heatsoak"], ["run"])
    assert config["Healthcheck"]["Test"][0] == "CMD"
    assert config["Labels"]["org.opencontainers.image.licenses"] == "Apache-2.0"
    assert config["Labels"]["org.opencontainers.image.version"] == _version()


def _version() -> str:
    command = [sys.executable, str(ROOT / "heatsoak.py"), "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]


def test_the_bill_of_materials_lists_what_is_in_it(image: str) -> None:
    """CycloneDX, with the agent and each of its packages by version, and no TensorFlow among them."""
    container = buildah("from", image)
    try:
        bill = json.loads(Path(buildah("mount", container), "opt/heatsoak/sbom.json").read_text(encoding="utf-8"))
        buildah("umount", container)
    finally:
        buildah("rm", container)
    assert bill["bomFormat"] == "CycloneDX"
    parts = {part["name"].lower(): part["version"] for part in bill["components"]}
    assert {"heatsoak", "nvidia-ml-py", "psutil", "msgspec", "h2"} <= parts.keys()
    assert not {"tensorflow", "tensorflow-cpu", "cyclonedx-bom", "pip"} & parts.keys()


def test_hadolint_finds_nothing() -> None:
    """The Containerfile is well kept."""
    ended = subprocess.run(["hadolint", str(_CONTAINERFILE)], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "")


def test_it_serves_eight_cards_as_its_own_user_on_a_root_that_cannot_be_written(
    image: str, tmp_path: Path, mounts: dict[str, tuple[Path, str]]
) -> None:
    """Every process is uid 10001 without capabilities, the health check passes, SIGTERM to process 1 ends it with 0."""
    with running_container(image, tmp_path, environ=_environ(), mounts=mounts) as container:
        eventually(lambda: len(_values(container, "heatsoak_gpu_temperature_celsius")) == 8, "eight cards")
        status = dict(line.split(":", 1) for line in Path(f"/proc/{container.pid}/status").read_text().splitlines())
        assert set(status["Uid"].split()) == {str(_UID)}
        assert {status[name].strip() for name in ("CapEff", "CapBnd")} == {"0" * 16}
        assert status["NSpid"].split()[-1] == "1"
        assert container.run(["touch", "/opt/heatsoak/x"]) != 0
        assert container.run(["touch", "/etc/x"]) != 0
        assert container.run(configuration(image)["Healthcheck"]["Test"][1:]) == 0
        begun_s = time.monotonic()
        assert container.stop() == 0
        assert time.monotonic() - begun_s < 5.0
    assert (tmp_path / "state" / "heatsoak.db").stat().st_uid == _UID
    assert not [line for line in container.log().splitlines() if '"level": "error"' in line]


@pytest.fixture(scope="module")
def tensorflow() -> Path:
    """Return packages with TensorFlow for the image's Python: these tests' own where that is the same."""
    found = importlib.util.find_spec("tensorflow")
    if sys.version_info[:2] == (3, 11) and found and found.origin:
        return Path(found.origin).parents[1]
    packages = STORE / "tensorflow"
    if not (packages / ".complete").exists():
        command = [
            sys.executable, "-m", "pip", "--quiet", "install", "--no-index", "--target", str(packages), "--upgrade",
            "--find-links", str(wheels("tensorflow-cpu")), "--only-binary", ":all:", "--python-version", "3.11",
            "tensorflow-cpu",
        ]  # fmt: skip
        subprocess.run(command, check=True, timeout=300, capture_output=True)
        (packages / ".complete").touch()
    return packages


def test_the_probes_measure_the_tensorflow_of_the_image(
    image: str, tensorflow: Path, tmp_path: Path, mounts: dict[str, tuple[Path, str]]
) -> None:
    """The agent's own environment has none; the image's Python has, and that is what runs, on a read-only root."""
    environ = _environ(
        HEATSOAK_PROBE_DEVICE="cpu", HEATSOAK_PROBE_FIRST_DELAY_S="0.5", HEATSOAK_PROBE_HOST_MEMORY_MIB="1500"
    )
    mounts[_PACKAGES_OF_THE_IMAGE] = (tensorflow, "ro")
    with running_container(image, tmp_path, environ=environ, mounts=mounts) as container:
        assert container.run(["/opt/heatsoak/bin/python", "-c", "import tensorflow"]) != 0
        eventually(lambda: _runs(container), "the first probe", 120.0)
        assert _runs(container).keys() == {("ok", "")}, container.log()
        assert _values(container, "heatsoak_probe_matmul_flops_per_second")[0][1] > 1e8


def test_without_the_hosts_pids_nothing_is_probed_and_nobody_is_named_wrongly(
    image: str, tmp_path: Path, mounts: dict[str, tuple[Path, str]]
) -> None:
    """Here process 1 is the agent, and the driver means another: no probe, no job, no cause, no pod's network."""
    scenarios = tmp_path / "scenarios"
    subprocess.run(["cp", "-a", str(SCENARIOS), str(scenarios)], check=True)
    (scenarios / "stranger.scenario").write_text("include eight\nprocess 4 compute pid 1 memory 1GiB\n")
    mounts["/opt/fake/scenarios"] = (scenarios, "ro")
    environ = _environ(
        FAKE_NVML_SCENARIO="/opt/fake/scenarios/stranger.scenario",
        HEATSOAK_PROBE_FIRST_DELAY_S="0.5",
        HEATSOAK_ALLOCATION_SLURM="true",
        SLURM_JOB_ID="42",
    )
    with running_container(image, tmp_path, environ=environ, mounts=mounts) as container:
        eventually(lambda: _values(container, "heatsoak_collector_success"), "the collectors")
        assert eventually(lambda: _runs(container), "the first runs").keys() == {("skipped", "no_host_pid")}
        eventually(
            lambda: any(
                labels["collector"] == "allocation" for labels, _ in _values(container, "heatsoak_collector_success")
            ),
            "the first answer on jobs",
        )
        assert _values(container, "heatsoak_gpu_allocation_info") == []
        states = {labels["state"] for labels, value in _values(container, "heatsoak_workload_state") if value}
        assert "input_bound" not in states
        page = container.get("/metrics")
        assert "heatsoak_host_memory_" in page
        assert "heatsoak_host_network_" not in page


def test_with_the_hosts_pids_the_job_of_a_process_is_named(
    image: str, tmp_path: Path, mounts: dict[str, tuple[Path, str]]
) -> None:
    """The same image in the host's pid namespace sees whose process is on the card."""
    user = {"user": _UID, "group": _UID, "extra_groups": []}
    with subprocess.Popen(["sleep", "300"], env={"SLURM_JOB_ID": "42", "PATH": "/usr/bin:/bin"}, **user) as sleeper:  # type: ignore[call-overload]
        try:
            scenarios = tmp_path / "scenarios"
            subprocess.run(["cp", "-a", str(SCENARIOS), str(scenarios)], check=True)
            scenario = f"include eight\nprocess 4 compute pid {sleeper.pid} memory 1GiB\n"
            (scenarios / "job.scenario").write_text(scenario)
            mounts["/opt/fake/scenarios"] = (scenarios, "ro")
            environ = _environ(
                FAKE_NVML_SCENARIO="/opt/fake/scenarios/job.scenario",
                HEATSOAK_PROBE_TRUST_PIDS="yes",
                HEATSOAK_ALLOCATION_SLURM="true",
            )
            with running_container(image, tmp_path, environ=environ, mounts=mounts, host_pids=True) as container:
                rows = eventually(lambda: _values(container, "heatsoak_gpu_allocation_info"), "the job")
                assert [(labels["gpu"], labels["slurm_job"]) for labels, _ in rows] == [("4", "42")]
        finally:
            sleeper.kill()


def test_the_agent_alone_serves_without_probes(
    agent_image: str, tmp_path: Path, mounts: dict[str, tuple[Path, str]]
) -> None:
    """The small image: cards on the page, and no probe is expected of it."""
    with running_container(agent_image, tmp_path, environ=_environ(), mounts=mounts) as container:
        eventually(lambda: len(_values(container, "heatsoak_gpu_temperature_celsius")) == 8, "eight cards")
        assert _runs(container) == {}
