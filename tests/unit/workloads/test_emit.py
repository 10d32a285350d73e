"""What the child writes is what the agent reads."""

import os

import msgspec
import pytest

from agent.model import probe
from workloads import emit


@pytest.fixture
def pipe() -> "tuple[int, int]":
    """Return the two ends of a pipe."""
    return os.pipe()


def test_the_agent_reads_every_event(pipe: "tuple[int, int]") -> None:
    """Each line decodes into the agent's structure with the same values."""
    read, write = pipe
    writer = emit.Emitter(write)
    writer.hello(emit.Environment(tensorflow="2.21.0"), emit.Device("gpu", uuid="GPU-1"), 1.5)
    writer.phase(0, "warmup", 12.5)
    writer.result(
        emit.Result(
            "matmul", "ok", value=1e12, unit="flop/s", timing=emit.Timing(1, 1, 1, 0, 3, 2, 0.5, 0.5, 0.0),
            figures={"load_s": 3.0}, notes={"host_memory": "pinned"}, series={"loss": [2.5, 2.0]},
        )
    )  # fmt: skip
    writer.done(2.5, 2**29)
    os.close(write)
    with os.fdopen(read, "rb") as lines:
        events = [msgspec.json.decode(line, type=probe.ChildEvent) for line in lines]
    assert events[0] == probe.Hello(1, probe.Environment(tensorflow="2.21.0"), probe.Device("gpu", uuid="GPU-1"), 1.5)
    assert events[1] == probe.Phase(0, "warmup", 12.5)
    assert events[2] == probe.ProbeResult(
        "matmul", "ok", value=1e12, unit="flop/s", timing=probe.Timing(1, 1, 1, 0, 3, 2, 0.5, 0.5, 0.0),
        figures={"load_s": 3.0}, notes={"host_memory": "pinned"}, series={"loss": (2.5, 2.0)},
    )  # fmt: skip
    assert events[3] == probe.Done(2.5, 2**29)


def test_both_sides_have_the_same_fields() -> None:
    """A field added on one side is added on the other."""
    for ours, theirs in (
        (emit.Result, probe.ProbeResult),
        (emit.Timing, probe.Timing),
        (emit.Device, probe.Device),
        (emit.Environment, probe.Environment),
    ):
        assert tuple(ours.__dataclass_fields__) == theirs.__struct_fields__


def test_a_number_that_json_lacks_is_refused(pipe: "tuple[int, int]") -> None:
    """NaN never reaches the agent."""
    with pytest.raises(ValueError, match="JSON compliant"):
        emit.Emitter(pipe[1]).result(emit.Result("matmul", "ok", value=float("nan")))
    for end in pipe:
        os.close(end)
