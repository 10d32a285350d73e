"""The backward pass is really there: gradients, the variables' change, and the work counted."""

import json
import subprocess
from pathlib import Path

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
