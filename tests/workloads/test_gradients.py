"""The backward pass is really there: gradients, the variables' change, and the work counted."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(300)
SCRIPT = Path(__file__).with_name("gradients.py")


def test_backward_pass(python: str, package: Path) -> None:
    """Gradients equal the loss's own differences, a step moves each variable by them, and its work is threefold."""
    run = subprocess.run(
        ["nice", python, "-I", str(SCRIPT), str(package)], capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    for network in ("resnet", "vgg"):
        slopes = report[network]["slopes"]
        assert len(slopes) >= 10
        assert sum(length > 1e-3 for length, _ in slopes) >= 0.8 * len(slopes)
        for length, difference in slopes:
            assert difference == pytest.approx(length, rel=0.02, abs=3e-4)
        assert max(report[network]["changes"]) < 0.05
    work = report["flops"]
    forward = work["Conv2D"]
    assert forward == pytest.approx(2 * 4.09e9, rel=0.01)
    assert work["Conv2DBackpropFilter"] == forward
    assert work["Conv2DBackpropInput"] == pytest.approx(forward, rel=0.05)
    assert (report["variables"], report["parameters"]) == (161, 25_557_032)
    check_accumulation(report["accumulated"])
    check_replication(report["replicated"])
    for losses in report["sizes"].values():
        assert all(0 < loss < 100 for loss in losses), losses


def check_accumulation(found: dict[str, Any]) -> None:
    """Two batches of the same images have the gradient of one; the sums start anew after each update."""
    assert found["difference"] < 1e-3
    assert found["losses"][0] == pytest.approx(found["losses"][1], rel=1e-5)
    assert (found["left"], found["images"], found["held"], found["work"]) == (0.0, 16, 1.0, 2.0)


def check_replication(found: dict[str, Any]) -> None:
    """Replicas with images of their own move as one device that has all the images, and stay alike."""
    assert found["data_differ"] > 0.5
    assert found["difference"] < 1e-3
    assert found["between"] == 0.0
    assert found["losses"][0] == pytest.approx(found["losses"][1], rel=1e-5)
    assert (found["images"], found["devices"]) == (8, ["CPU:0", "CPU:1"])
    assert found["work"] == pytest.approx(1.0)
