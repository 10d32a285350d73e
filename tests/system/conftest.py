"""What the tests on real parts share: they need root, and say so where they do not get it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakenvml.build import build
from tests.support.agent import ROOT
from tests.support.machine import Machine, booted
from tests.support.wheels import wheels

INSTALLER = "/opt/source/deploy/systemd/install.sh"
ENVIRONMENT = "LD_LIBRARY_PATH=/opt/fake/lib\nFAKE_NVML_SCENARIO=/opt/fake/scenarios/eight.scenario\n"
CONFIGURATION = """\
[agent]
tick_s = 0.5
[probe]
enabled = false
device = "cpu"
host_memory_mib = 1500
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests of this folder where the user is not root."""
    for item in items:
        if item.get_closest_marker("system") and os.geteuid() != 0:
            item.add_marker(pytest.mark.skip(reason="needs root: it mounts, boots and makes namespaces"))


def machine_files(*requirements: str) -> dict[str, Path]:
    """Return what an administrator has copied to a machine without a network, and the fake driver."""
    return {
        "/opt/source/deploy": ROOT / "deploy",
        "/opt/source/constraints.txt": ROOT / "constraints.txt",
        "/opt/inside": ROOT / "tests" / "system" / "inside",
        "/opt/packages": wheels(*requirements),
        "/opt/fake/lib": build(),
        "/opt/fake/scenarios": ROOT / "tests" / "fakenvml" / "scenarios",
    }


@pytest.fixture(scope="session")
def installed() -> Iterator[Machine]:
    """Give a booted machine on which the installer has put the agent and TensorFlow for the CPU, eight cards in it."""
    with booted(machine_files("tensorflow-cpu")) as machine:
        machine.write("/etc/heatsoak/environment", ENVIRONMENT)
        machine.write("/etc/heatsoak/heatsoak.toml", CONFIGURATION)
        machine.run(INSTALLER, "install", "--wheels", "/opt/packages", "--tensorflow", "cpu")
        yield machine
