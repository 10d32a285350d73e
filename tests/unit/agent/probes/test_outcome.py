"""What is said of a request without a result, and of a result from somewhere else."""

import pytest

from agent.model.probe import Device
from agent.model.snapshot import CardIdentity
from agent.model.vocabulary import PROBE_REASONS, reason_is_known
from agent.probes.child import ChildExit
from agent.probes.outcome import ENVIRONMENT_REASONS, device_fault, failure_of, last_word

CARD = CardIdentity(0, "GPU-00000000-aaaa", pci_bus_id="0000:1b:00.0")


@pytest.mark.parametrize(
    ("ended", "oom_killed", "expected"),
    [
        (ChildExit("exited", code=-11), False, ("error", "crashed:SIGSEGV")),
        (ChildExit("exited", code=-6), False, ("error", "crashed:SIGABRT")),
        (ChildExit("exited", code=-9), False, ("error", "crashed:SIGKILL")),
        (ChildExit("exited", code=-9), True, ("error", "oom_killed")),
        (ChildExit("exited", code=137), True, ("error", "oom_killed")),
        (ChildExit("exited", code=137), False, ("error", "exit_code:137")),
        (ChildExit("exited", code=-11), True, ("error", "crashed:SIGSEGV")),
        (ChildExit("exited", code=-250), False, ("error", "crashed:250")),
        (ChildExit("exited", code=0), False, ("error", "exit_code:0")),
        (ChildExit("done", code=0), False, ("error", "bad_result")),
        (ChildExit("bad_result", "cut off", code=0), False, ("error", "bad_result")),
        (ChildExit("deadline", code=-15, killed=True), False, ("timeout", "deadline")),
        (ChildExit("aborted", "tenant_arrived", code=-15, killed=True), True, ("aborted", "tenant_arrived")),
        (ChildExit("not_started", "/x: No such file"), False, ("error", "interpreter_missing")),
    ],
)
def test_every_end_has_a_documented_word(ended: ChildExit, oom_killed: bool, expected: tuple[str, str]) -> None:
    """A SIGKILL is lack of memory only with the kernel's own evidence."""
    failure = failure_of(ended, oom_killed=oom_killed)
    assert (failure.status, failure.reason) == expected
    assert reason_is_known(failure.status, failure.reason)


@pytest.mark.parametrize(
    "fatal",
    [
        "F0000 00:00:1796078955.609588 3247 cuda_dnn.cc:1190] Check failed: status == CUDNN_STATUS_SUCCESS (3 vs. 0)",
        "Fatal Python error: Segmentation fault",
        "tensor_shape.cc:55: Check failed: size >= 0 (-1 vs. 0)",
    ],
)
def test_a_failed_assertion_is_told_rather_than_its_stack(fatal: str) -> None:
    """Pages of addresses follow it."""
    stack = "".join(f"    @     0x7f17e3329{at:03x}  (unknown)\n" for at in range(40))
    assert last_word(f"I0000 loaded cuDNN\n{fatal}\n*** Check failure stack trace: ***\n{stack}") == fatal
    assert last_word("one\n\n two \n\n") == "two"
    assert last_word("\n") == ""


def test_last_line_of_the_output_explains() -> None:
    """People read the last thing the child said, on one clean line."""
    failure = failure_of(ChildExit("exited", code=1, output="a\nImportError: \x1b[31mno\n \n"), oom_killed=False)
    assert failure.detail.startswith("ImportError")
    assert "\x1b" not in failure.detail


@pytest.mark.parametrize(
    ("device", "reason"),
    [
        (Device("gpu", uuid="GPU-00000000-AAAA", pci_bus_id="00000000:1B:00.0"), None),
        (Device("gpu", uuid="00000000-aaaa"), None),
        (Device("gpu", pci_bus_id="0000:1B:00.0"), None),
        (Device("gpu", uuid="GPU-00000000-bbbb", pci_bus_id="0000:1b:00.0"), "wrong_device"),
        (Device("gpu", uuid="GPU-00000000-aaaa", pci_bus_id="0000:3b:00.0"), "wrong_device"),
        (Device("gpu"), "wrong_device"),
        (Device("cpu"), "ran_on_cpu"),
        (None, "bad_result"),
    ],
)
def test_result_counts_only_from_the_card_asked_for(device: Device | None, reason: str | None) -> None:
    """Identity is compared however each side writes it; what cannot be told apart is not believed."""
    fault = device_fault(device, CARD)
    assert (fault.reason if fault else None) == reason


def test_cpu_results_need_no_card() -> None:
    """Asked to measure the CPU, there is no card to compare."""
    assert device_fault(Device("cpu"), None) is None


def test_environment_reasons_are_documented() -> None:
    """Each is a reason of an error."""
    assert PROBE_REASONS["error"].keys() >= ENVIRONMENT_REASONS
