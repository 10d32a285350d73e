"""The interpreters under test and the package they run."""

import os
import sys
from pathlib import Path

import pytest

from agent.probes.package import installed_workloads, make_package
from tests.workloads.child import package_command


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the workloads as the agent packs them."""
    return make_package(installed_workloads(), tmp_path_factory.mktemp("package"))


@pytest.fixture(
    params=[
        pytest.param("own", marks=pytest.mark.tensorflow),
        pytest.param("tf29", marks=[pytest.mark.tensorflow, pytest.mark.tf29]),
    ]
)
def python(request: pytest.FixtureRequest) -> str:
    """Return this interpreter, or the one with TensorFlow 2.9."""
    return sys.executable if request.param == "own" else os.environ["HEATSOAK_TF29_PYTHON"]


@pytest.fixture
def command(python: str, package: Path) -> list[str]:
    """Return the command of a child."""
    return package_command(python, package)
