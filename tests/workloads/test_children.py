"""Probe children on the CPU: every probe answers, wrong answers are found, what is missing is named."""

import sys
from pathlib import Path

import pytest

from agent.model.probe import PROBE_KINDS, ProbeRequest, ProbeResult
from tests.workloads.child import Answer, package_command, run_child, run_text

pytestmark = pytest.mark.timeout(300)
KERAS_WATCH = Path(__file__).with_name("keras_watch.py")
LARGEST_PAIR_BYTES = 1.5e9
LARGEST_PAIR_CPU_S = 60.0
"""30 s on two cores."""


def by_variant(answer: Answer, probe: str) -> dict[str, ProbeResult]:
    """Return a probe's results by variant, each of them good."""
    found = {result.variant: result for result in answer.results if result.probe == probe}
    assert {result.status for result in found.values()} == {"ok"}, (found, answer.errors)
    return found


def test_the_judged_pair_fits_two_cores(command: list[str]) -> None:
    """Product and training step answer within memory and CPU time that any machine has."""
    answer = run_child(command, [ProbeRequest("matmul"), ProbeRequest("resnet50")])
    assert (answer.exit_code, len(answer.results)) == (0, 2), answer.errors
    product, step = answer.results
    assert (product.status, product.dtype, product.shape, product.unit) == ("ok", "fp32", "1024x1024x1024", "flop/s")
    assert (step.status, step.dtype, step.shape, step.unit) == ("ok", "fp32", "2x64x64x3", "images/s")
    for result in answer.results:
        assert result.value is not None
        assert result.value > 0
        assert result.method_version >= 1
        assert result.timing is not None
        assert result.timing.min_s <= result.timing.median_s <= result.timing.max_s
        assert result.timing.host_share is None
        assert result.window_start_monotonic_s is not None
        assert result.window_end_monotonic_s is not None
        assert result.window_end_monotonic_s - result.window_start_monotonic_s > 0.4
        assert (result.allocator_peak_bytes or 0) > 2**22
    assert 2.9 < step.figures["step_to_forward_convolution_flops_ratio"] < 3.1
    assert answer.hello.environment.tensorflow.startswith("2.")
    assert (answer.hello.device.kind, answer.hello.device.uuid) == ("cpu", "")
    assert answer.phases[:6] == [(0, name) for name in ("build", "first_call", "warmup", "settle", "measure", "check")]
    assert answer.done.host_peak_bytes < LARGEST_PAIR_BYTES
    assert answer.done.cpu_s < LARGEST_PAIR_CPU_S


def test_every_other_probe_answers_without_keras(python: str, package: Path) -> None:
    """All run on a CPU at small shapes, and no module of Keras is loaded on the way, not even by TensorFlow itself."""
    short = 0.2
    answer = run_child(
        [*package_command(python, KERAS_WATCH), str(package)],
        [
            ProbeRequest("matmul", "bf16", size=512, seconds=short),
            ProbeRequest("matmul", "fp64", size=512, seconds=short),
            ProbeRequest("vgg16", seconds=short),
            ProbeRequest("bandwidth", seconds=short),
            ProbeRequest("fill"),
            ProbeRequest("memory", size=32, options={"optimizer": "adam"}),
            ProbeRequest("pipeline", size=32, seconds=short),
        ],
        memory_limit_bytes=2**30,
    )
    assert answer.exit_code == 0, answer.errors
    assert {result.probe for result in answer.results} == set(PROBE_KINDS) - {"resnet50"}
    assert {result.dtype for result in answer.results if result.probe == "matmul"} == {"bf16", "fp64"}
    assert by_variant(answer, "vgg16")[""].shape == "1x32x32x3"
    assert set(by_variant(answer, "bandwidth")) == {"device_copy", "device_triad"}
    fill = by_variant(answer, "fill")[""]
    assert fill.figures["share_of_free_memory"] >= 0.9
    assert fill.figures["patterns"] == 5
    memory = by_variant(answer, "memory")[""]
    assert memory.figures["optimizer_added_bytes"] == pytest.approx(2 * memory.figures["parameter_bytes"], rel=0.25)
    assert (memory.value or 0) > memory.figures["sgd_peak_bytes"]
    check_pipeline(by_variant(answer, "pipeline"))


def check_pipeline(found: dict[str, ProbeResult]) -> None:
    """Each side alone, both together, cold and warm, tuned and not."""
    assert set(found) == {"host_cold", "host_tuned", "host_untuned", "card", "together_tuned", "together_untuned"}
    assert found["host_tuned"].figures["files"] == 16
    assert found["host_cold"].figures["cached_share_before"] <= 1
    for variant in ("together_tuned", "together_untuned"):
        figures = found[variant].figures
        assert 0 <= figures["input_bound_ratio"] < 1
        assert figures["input_bound_ratio"] == pytest.approx(
            max(0.0, 1 - (found[variant].value or 0) / figures["card_images_per_second"])
        )


def test_one_wrong_element_is_a_wrong_answer(command: list[str]) -> None:
    """Never a low score: status, reason, number and place; the measurements after it still run."""
    requests = [
        ProbeRequest("matmul", dtype, size=512, seconds=0.05, options={"corrupt": place})
        for place, dtype in enumerate(["fp32", "bf16", "fp32", "fp64"], start=1)
    ]
    answer = run_child(command, [*requests, ProbeRequest("fill", options={"corrupt": True}), ProbeRequest("fill")])
    *products, fill, good = answer.results
    places = set()
    for result in products:
        assert (result.status, result.reason, result.value) == ("wrong_answer", "exact_mismatch", None)
        assert result.detail.startswith("1 of 262144 elements differ, in 1 rows and 1 columns; first at row")
        assert result.shape == "512x512x512"
        places.add(result.detail)
    assert len(places) == len(products)
    assert (fill.status, fill.reason) == ("wrong_answer", "memory_mismatch")
    assert "pattern 0xaa: 1 rows differ; 1 words of row" in fill.detail
    assert good.status == "ok"


def test_what_cannot_be_done_is_named(command: list[str]) -> None:
    """Too little memory with its size, a mode that a probe lacks, images that are not there."""
    answer = run_child(
        command,
        [
            ProbeRequest("memory", size=30000, batch=1000),
            ProbeRequest("matmul", mode="xla"),
            ProbeRequest("pipeline", options={"data_dir": "/nonexistent"}),
        ],
    )
    assert [(result.status, result.reason) for result in answer.results] == [
        ("error", f"oom:{1000 * 30000**2 * 3 * 4}"),
        ("skipped", "unsupported"),
        ("error", "failed:TooFewImages"),
    ]
    assert answer.exit_code == 0


def test_no_card_is_never_a_result(command: list[str]) -> None:
    """Asked for a card, a CPU build answers with an error for each request and no number."""
    answer = run_child(command, [ProbeRequest("matmul"), ProbeRequest("fill")], device="gpu")
    assert [(result.status, result.reason, result.value) for result in answer.results] == [
        ("error", "not_a_gpu_build", None)
    ] * 2
    assert (answer.exit_code, answer.hello.device.kind) == (0, "gpu")


@pytest.mark.tensorflow
def test_compilations_are_kept(package: Path, tmp_path: Path) -> None:
    """An XLA run leaves what it compiled in the directory named, for the next child to find."""
    command = package_command(sys.executable, package)
    answer = run_child(command, [ProbeRequest("vgg16", mode="xla", seconds=0.05)], cache_dir=str(tmp_path))
    assert (answer.results[0].status, answer.results[0].mode) == ("ok", "xla")
    assert list((tmp_path / "xla").iterdir())


def test_an_interpreter_without_tensorflow(package: Path) -> None:
    """The child itself says so, and ends well."""
    answer = run_child([sys.executable, "-I", "-S", str(package)], [ProbeRequest("matmul")])
    assert [(result.status, result.reason) for result in answer.results] == [("error", "tensorflow_missing")]
    assert (answer.exit_code, answer.hello.environment.tensorflow) == (0, "")


@pytest.mark.parametrize("text", [b"", b"{}", b"\xff", b'{"version": 1, "device": "cpu", "requests": []}'])
def test_an_unfit_specification(package: Path, text: bytes) -> None:
    """One line says what is wrong; nothing is answered."""
    answer = run_text([sys.executable, "-I", str(package)], text)
    assert (answer.exit_code, answer.events) == (2, ())
    assert answer.errors.startswith("workloads: ")
    assert answer.errors.count("\n") == 1
