"""Ways to train on the CPU: step by step, by accumulation, spread over devices, and as widely pasted scripts do."""

import sys
from pathlib import Path

import pytest

from agent.model.probe import ProbeRequest
from tests.workloads.child import package_command, run_child

pytestmark = pytest.mark.timeout(300)
EXHAUSTED = Path(__file__).with_name("exhausted.py")
SHORT = 0.1
"""Seconds of a window that is only there to be passed."""


@pytest.fixture
def own(package: Path) -> list[str]:
    """Return the command of a child of this interpreter; what 2.9 might do otherwise is compared in gradients.py."""
    return package_command(sys.executable, package)


@pytest.mark.tensorflow
def test_steps_and_accumulation(own: list[str]) -> None:
    """Each further step has its time and loss; batches of one update count all; what is unfit is refused by name."""
    answer = run_child(
        own,
        [
            ProbeRequest("resnet50", size=32, batch=1, seconds=SHORT, options={"steps": 3.0}),
            ProbeRequest("vgg16", seconds=SHORT, options={"accumulate": 2.0, "steps": 2.0}),
            ProbeRequest("vgg16", options={"accumulate": 2.0, "method": "article"}),
            ProbeRequest("vgg16", seconds=SHORT, options={"steps": 2.5}),
            ProbeRequest("vgg16", options={"method": "guess"}),
        ],
    )
    stepped, summed, *refused = answer.results
    assert (stepped.status, len(stepped.series["step_s"]), len(stepped.series["loss"])) == ("ok", 3, 3), answer.errors
    assert stepped.timing is not None
    assert all(0.1 * stepped.timing.min_s < step_s < 20 for step_s in stepped.series["step_s"])
    assert len(set(stepped.series["loss"])) > 1
    assert (summed.status, summed.variant, summed.shape, summed.figures["accumulate"]) == ("ok", "", "1x32x32x3", 2)
    assert summed.timing is not None
    assert summed.value == pytest.approx(2 * summed.timing.inner / summed.timing.median_s)
    assert summed.figures["accumulated_bytes"] == 33_638_218 * 4
    assert len(summed.series["loss"]) == 2
    assert [(result.status, result.reason) for result in refused] == [
        ("skipped", "unsupported"),
        ("error", "failed:BadOption"),
        ("error", "failed:BadOption"),
    ]
    assert "steps is 2.5, want 0 to 10000" in refused[1].detail


@pytest.mark.tensorflow
def test_replicas(own: list[str]) -> None:
    """A step over two devices counts the images of both; what runs on one device says so."""
    answer = run_child(
        own,
        [
            ProbeRequest("vgg16", seconds=SHORT, options={"steps": 1.0}),
            ProbeRequest("vgg16", mode="xla"),
            ProbeRequest("matmul"),
        ],
        replicas=2,
    )
    pair, compiled, product = answer.results
    assert (pair.status, pair.shape, pair.figures["replicas"]) == ("ok", "1x32x32x3", 2), answer.errors
    assert pair.timing is not None
    assert pair.value == pytest.approx(2 * pair.timing.inner / pair.timing.median_s)
    assert pair.figures["step_flops"] == pytest.approx(2 * 1.9927e9, rel=1e-3)
    assert len(pair.series["step_s"]) == 1
    assert [(result.status, result.reason) for result in (compiled, product)] == [("skipped", "unsupported")] * 2


def test_the_articles_way(command: list[str]) -> None:
    """Keras is there for the request that asks for it, under its own policies; our own step then runs as ever."""
    article = {"method": "article"}
    answer = run_child(
        command,
        [
            ProbeRequest("resnet50", "bf16", size=32, batch=1, seconds=SHORT, options={**article, "steps": 1.0}),
            ProbeRequest("vgg16", mode="xla", options=article),
            ProbeRequest("vgg16", seconds=SHORT),
        ],
    )
    pasted, compiled, own = answer.results
    assert (pasted.status, pasted.variant, pasted.dtype) == ("ok", "article", "bf16"), (pasted, answer.errors)
    assert (pasted.shape, len(pasted.series["loss"])) == ("1x32x32x3", 1)
    assert pasted.notes["keras"][:2] in ("2.", "3.")
    assert (compiled.status, compiled.reason) == ("skipped", "unsupported")
    assert (own.status, own.variant, own.notes) == ("ok", "", {})


@pytest.mark.tensorflow
def test_what_a_failed_request_held_is_given_back(package: Path) -> None:
    """After a step that ran out of memory the next request's peak is its own."""
    small = ProbeRequest("memory", size=32, batch=1)
    command = [*package_command(sys.executable, EXHAUSTED), str(package)]
    before, failed, after = run_child(command, [small, ProbeRequest("vgg16"), small]).results
    assert (failed.status, failed.reason) == ("error", f"oom:{256 * 1024 * 4}")
    assert before.value is not None
    assert after.value is not None
    assert after.value < 1.3 * before.value
