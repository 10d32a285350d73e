"""The demo in containers: its file is one that Compose accepts."""

import shutil
import subprocess
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[2] / "deploy" / "compose" / "compose.yaml"


@pytest.mark.system
def test_compose_accepts_the_file() -> None:
    """`docker-compose config` resolves it without an error or a warning; no engine is needed for that."""
    command = shutil.which("docker-compose")
    assert command, "docker-compose is not installed; deploy/system-tools.sh does that"
    done = subprocess.run(
        [command, "-f", str(_FILE), "config"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "grafana/dashboards" in done.stdout
