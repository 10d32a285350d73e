"""What `make run` starts: the very environment of the Makefile, on a free port."""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.support.agent import LONG_S, ROOT, eventually

_PORT = 19871


def _environment(directory: Path) -> dict[str, str]:
    """Return the settings that `make run` gives the agent, its relative paths included."""
    recipe = subprocess.run(
        ["make", "-n", "run", f"PORT={_PORT}"], capture_output=True, text=True, cwd=ROOT, timeout=LONG_S, check=True
    ).stdout
    settings = dict(re.findall(r"\b(HEATSOAK_[A-Z_]+)=(\S+)", recipe))
    assert not Path(settings["HEATSOAK_STATE_DIR"]).is_absolute()
    (directory / settings["HEATSOAK_STATE_DIR"]).mkdir(parents=True)
    return {**os.environ, **settings, "HEATSOAK_PROBE_DEVICE": "cpu", "HEATSOAK_PROBE_HOST_MEMORY_MIB": "1500"}


def _page() -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{_PORT}/metrics", timeout=LONG_S) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


@pytest.mark.tensorflow
def test_make_run_measures_within_three_minutes(tmp_path: Path) -> None:
    """Both probes' results appear on the page, from the directory and the settings that `make run` uses."""
    with (tmp_path / "log").open("wb") as log:
        agent = subprocess.Popen(
            [sys.executable, str(ROOT / "heatsoak.py"), "run"], env=_environment(tmp_path), cwd=tmp_path,
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            for metric in ("heatsoak_probe_matmul_flops_per_second{", "heatsoak_probe_resnet50_images_per_second{"):
                eventually(lambda metric=metric: metric + 'device="cpu"' in _page(), metric, timeout_s=110.0)  # type: ignore[misc]
        finally:
            agent.terminate()
            code = agent.wait(LONG_S)
    assert code == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
