"""What an exception means is said in the agent's words."""

import pytest

from agent.model.vocabulary import reason_is_known
from workloads import failure


class ResourceExhaustedError(Exception):
    """Stands for TensorFlow's exception of that name."""


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("OOM when allocating tensor with shape[256,64,112,112] and type bfloat16 on /job:x by GPU_0_bfc", 411041792),
        ("OOM when allocating tensor with shape[] and type double on x", 8),
        ("Out of memory while trying to allocate 1234567 bytes.", 1234567),
        ("Failed to allocate request for 2.50GiB", None),
        ("failed: Out of memory while trying to allocate 1.5GiB", 1610612736),
        ("{{function_node}} failed to allocate memory [Op:Mul]", None),
        ("OOM when allocating tensor with shape[2] and type variant", None),
    ],
)
def test_finds_the_size_that_failed(text: str, size: int | None) -> None:
    """The size comes out of TensorFlow's several wordings, or is left out."""
    assert failure.failed_bytes(text) == size


def test_out_of_memory_carries_its_size() -> None:
    """The reason holds the size where it is known."""
    known = failure.classify(ResourceExhaustedError("OOM when allocating tensor with shape[4,4] and type float on x"))
    assert (known.status, known.reason) == ("error", "oom:64")
    assert failure.classify(ResourceExhaustedError("failed to allocate memory")).reason == "oom"


@pytest.mark.parametrize(
    "raised",
    [
        ResourceExhaustedError("OOM when allocating tensor with shape[4,4] and type float on x"),
        MemoryError(),
        ValueError("line one\nline two"),
        RuntimeError("No OpKernel was registered to support Op 'FusedBatchNormV3'"),
        failure.wrong_answer(failure.NOT_FINITE, "x"),
    ],
)
def test_every_failure_is_documented(raised: Exception) -> None:
    """Status and reason are of the closed vocabulary, the detail is one line."""
    failed = failure.classify(raised)
    assert failed.status in ("error", "skipped", "wrong_answer")
    assert reason_is_known(failed.status, failed.reason)  # type: ignore[arg-type]
    assert "\n" not in failed.detail


def test_every_reason_named_here_is_documented() -> None:
    """The child has no word that the agent does not know."""
    words = [value for name, value in vars(failure).items() if name.isupper() and isinstance(value, str)]
    assert len(words) >= 15
    for word in words:
        assert reason_is_known("error", word) or reason_is_known("wrong_answer", word), word


def test_a_kernel_that_is_not_there_is_unsupported() -> None:
    """A build without the data type is not an error of the card."""
    failed = failure.classify(RuntimeError("Could not find device for node: {{node FusedBatchNormV3}}"))
    assert (failed.status, failed.reason) == ("skipped", "unsupported")


def test_details_are_short() -> None:
    """A kilobyte of trace does not travel."""
    assert len(failure.one_line("word " * 1000)) <= 300
