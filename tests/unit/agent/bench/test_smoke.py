"""The answer to whether TensorFlow really uses a card."""

import pytest

from agent.bench.smoke import answer_of, exit_code, text
from tests.unit.agent.bench.results import measured, training

GOOD = answer_of([measured("matmul", 5e13, "flop/s", dtype="fp32"), training(16)], "NVIDIA H200")


def test_yes_says_with_what() -> None:
    """Version and figures."""
    assert GOOD.uses
    assert GOOD.device == "gpu 0 NVIDIA H200"
    assert text([GOOD]) == (
        "gpu 0 NVIDIA H200: yes: TensorFlow 2.21.0 computed on the card, and right: "
        "matmul 50 TFLOP/s; resnet50 1,000.0 images/s"
    )
    assert exit_code([GOOD, GOOD]) == 0


def test_no_says_why_and_what_to_do() -> None:
    """A missing library by its name."""
    missing = answer_of([training(16, status="error", reason="missing_library:libcusolver.so.11")])
    assert not missing.uses
    assert text([missing]).startswith("gpu 0: no: missing_library:libcusolver.so.11: a library TensorFlow needs")
    assert "\n  -> add its folder to LD_LIBRARY_PATH" in text([missing])
    assert exit_code([GOOD, missing]) == 11
    assert exit_code([]) == 11


@pytest.mark.parametrize(("status", "reason"), [("wrong_answer", "exact_mismatch"), ("aborted", "gpu_lost")])
def test_a_card_that_computes_wrong_or_is_lost_is_bad(status: str, reason: str) -> None:
    """Exit code 10 goes before 11."""
    bad = answer_of([training(16, status=status, reason=reason)])  # type: ignore[arg-type]
    missing = answer_of([training(16, status="error", reason="no_gpu")])
    assert exit_code([missing, bad]) == 10
