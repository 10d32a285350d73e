"""The specification is read strictly."""

import json

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.model.probe import PROBE_KINDS, ChildSpec, ProbeRequest
from workloads import spec

GOOD = {"version": 1, "device": "cpu", "requests": [{"probe": "matmul"}]}


def test_reads_what_the_agent_writes() -> None:
    """Every field of the agent's structure arrives."""
    request = ProbeRequest("resnet50", "bf16", 32, 64, "xla", 1.5, {"corrupt": True, "data_dir": "/x", "n": 2.0})
    sent = ChildSpec(1, "gpu", (request,), "GPU-1", "0000:01:00.0", 2**34, 4, "/cache", 7, ("GPU-2",), 2, True)
    read = spec.parse(msgspec.json.encode(sent).decode())
    assert msgspec.to_builtins(sent) == {
        **{name: getattr(read, name) for name in ChildSpec.__struct_fields__ if name != "requests"},
        "requests": (msgspec.to_builtins(request),),
    }
    assert read.requests == (
        spec.Request("resnet50", "bf16", 32, 64, "xla", 1.5, {"corrupt": True, "data_dir": "/x", "n": 2.0}),
    )


def test_knows_every_probe_of_the_agent() -> None:
    """Agent and child have the same list of probes."""
    assert set(spec.PROBES) == set(PROBE_KINDS)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"version": 2}, "specification.version: 2, want 1"),
        ({"device": "tpu"}, "specification.device: 'tpu', want one of 'gpu', 'cpu'"),
        ({"requests": []}, "specification.requests: \\[\\], want at least one"),
        ({"requests": [{}]}, "specification.requests\\[0\\].probe: missing"),
        ({"requests": [{"probe": "matmul", "sise": 1}]}, "requests\\[0\\].sise: unknown, want one of batch"),
        ({"requests": [{"probe": "matmul", "size": -1}]}, "requests\\[0\\].size: -1, want a whole number"),
        ({"requests": [{"probe": "matmul", "size": True}]}, "requests\\[0\\].size: True"),
        ({"requests": [{"probe": "matmul", "seconds": "1"}]}, "requests\\[0\\].seconds: '1', want seconds"),
        ({"requests": [{"probe": "matmul", "dtype": "int4"}]}, "requests\\[0\\].dtype: 'int4'"),
        ({"requests": [{"probe": "matmul", "options": {"a": [1]}}]}, "options.a: \\[1\\]"),
        ({"requests": {"probe": "matmul"}}, "specification.requests: .*, want a list"),
        ({"seed": 1.5}, "specification.seed: 1.5"),
        ({"cache_dir": None}, "specification.cache_dir: None, want text"),
        ({"companion_uuids": ["GPU-1", 2]}, "specification.companion_uuids\\[1\\]: 2, want text"),
        ({"reserve_all": 1}, "specification.reserve_all: 1, want true or false"),
        ({"replicas": 0}, "specification.replicas: 0, want at least 1"),
        ({"device": "gpu", "replicas": 2}, "specification.replicas: 2, want 1, one for each card"),
    ],
)
def test_refuses_with_place_value_and_what_would_be_right(change: dict[str, object], complaint: str) -> None:
    """Each fault is named so that it can be mended."""
    with pytest.raises(spec.SpecError, match=complaint):
        spec.parse(json.dumps({**GOOD, **change}))


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"version": NaN}', '"x"'])
def test_refuses_what_is_no_object(text: str) -> None:
    """Anything but a JSON object is an unfit specification, never another exception."""
    with pytest.raises(spec.SpecError, match="specification"):
        spec.parse(text)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(field=st.sampled_from(["version", "device", "requests", "seed", "threads", "gpu_uuid", "x"]), value=_JSON)
def test_any_value_is_read_or_refused(field: str, value: object) -> None:
    """No document makes the parser raise anything but its own error."""
    try:
        read = spec.parse(json.dumps({**GOOD, field: value}))
    except spec.SpecError:
        return
    assert read.requests
    assert read.version == 1


@pytest.mark.parametrize("arguments", [[], ["x"], ["1", "2"], ["-1"]])
def test_refuses_a_command_line_without_a_descriptor(arguments: list[str]) -> None:
    """The one argument is a descriptor's number."""
    with pytest.raises(spec.SpecError, match="want RESULT_FD"):
        spec.parse_descriptor(arguments)
