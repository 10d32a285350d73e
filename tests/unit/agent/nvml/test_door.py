"""Every driver call passes one door, which names and counts what fails."""

import pynvml
import pytest

from agent.nvml.door import Door, RefusedError


class FakeNvml:
    """A binding with a few calls."""

    NVMLError = pynvml.NVMLError
    NVML_ERROR_UNKNOWN = 999
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_ERROR_GPU_IS_LOST = 15
    NVML_ERROR_TIMEOUT = 10

    def __init__(self) -> None:
        self.code = 0

    def nvmlAnswer(self, number: int) -> int:  # noqa: N802 - as the binding spells it
        """Return the number, or fail with the code set."""
        if self.code:
            raise pynvml.NVMLError(self.code)
        return number

    def nvmlOdd(self) -> str:  # noqa: N802 - as the binding spells it
        """Choke on bytes."""
        return b"\xff".decode()


def test_answer_passes_and_is_counted() -> None:
    """A call that succeeds gives its answer."""
    door = Door(FakeNvml())
    assert door.call("Answer", 7) == 7
    assert (door.succeeded, door.failed) == (1, {})


@pytest.mark.parametrize(
    ("code", "name", "unsupported", "lost", "counted"),
    [
        (3, "NOT_SUPPORTED", True, False, {}),
        (15, "GPU_IS_LOST", False, True, {}),
        (999, "UNKNOWN", False, False, {"UNKNOWN": 1}),
        (12345, "ERROR_12345", False, False, {"ERROR_12345": 1}),
    ],
)
def test_errors_get_their_name(code: int, name: str, *, unsupported: bool, lost: bool, counted: dict[str, int]) -> None:
    """Unsupported, lost and failed are three things; only failures are counted as such."""
    nvml = FakeNvml()
    nvml.code = code
    door = Door(nvml)
    with pytest.raises(RefusedError) as raised:
        door.call("Answer", 1)
    assert (raised.value.name, raised.value.unsupported, raised.value.lost) == (name, unsupported, lost)
    assert (door.failed, door.last_error, door.succeeded) == (counted, name, 0)


def test_expected_error_is_no_failure() -> None:
    """An event wait that times out is the normal case."""
    nvml = FakeNvml()
    nvml.code = 10
    door = Door(nvml)
    with pytest.raises(RefusedError):
        door.call("Answer", 1, expected="TIMEOUT")
    assert (door.failed, door.last_error) == ({}, "")


def test_missing_function_is_unsupported() -> None:
    """An older binding or driver lacks newer calls."""
    answer = Door(FakeNvml()).attempt("NeverHeardOf")
    assert isinstance(answer, RefusedError)
    assert answer.unsupported


def test_answer_the_binding_cannot_read_is_garbled() -> None:
    """Odd bytes from the driver do not end the sweep."""
    door = Door(FakeNvml())
    answer = door.attempt("Odd")
    assert isinstance(answer, RefusedError)
    assert (answer.name, door.failed) == ("GARBLED", {"GARBLED": 1})
