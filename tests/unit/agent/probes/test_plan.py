"""What is measured when."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.probes.plan import next_due_s, plans


def test_judged_pair_runs_in_one_child_each_hour() -> None:
    """Little card time: a bf16 product and a short training step."""
    hourly = plans("gpu", daily=True, data_dir="")[0]
    assert [(request.probe, request.dtype) for request in hourly.requests] == [("matmul", "bf16"), ("resnet50", "bf16")]
    assert [request.seconds for request in hourly.requests] == [0.0, 0.0]  # the probes' own windows


def test_rest_runs_daily_and_only_where_wanted() -> None:
    """Every other data type and network once a day, the pipeline on a wholly idle node."""
    _, daily, pipeline = plans("gpu", daily=True, data_dir="/data")
    assert {request.dtype for request in daily.requests if request.probe == "matmul"} == {
        "fp16",
        "tf32",
        "fp32",
        "fp64",
    }
    assert {"vgg16", "bandwidth"} <= {request.probe for request in daily.requests}
    assert pipeline.whole_node
    assert pipeline.requests[0].options == {"data_dir": "/data"}
    assert len(plans("gpu", daily=False, data_dir="")) == 1


def test_heavy_load_is_never_scheduled() -> None:
    """Memory fill is for burn-in and on demand."""
    everything = plans("gpu", daily=True, data_dir="") + plans("cpu", daily=True, data_dir="")
    assert "fill" not in {request.probe for plan in everything for request in plan.requests}


def test_cpu_has_small_shapes_of_its_own() -> None:
    """A CPU gets work it can finish."""
    (hourly,) = plans("cpu", daily=True, data_dir="")
    assert [(r.probe, r.dtype, r.size, r.batch) for r in hourly.requests] == [
        ("matmul", "fp32", 1024, 0),
        ("resnet50", "fp32", 64, 2),
    ]


def test_rhythm_keeps_to_when_a_run_was_due() -> None:
    """How long a run took does not move the next one."""
    assert next_due_s(100.0, 115.0, 3600.0, 0.0, 0.5) == 3700.0


def test_missed_runs_are_not_made_up_for() -> None:
    """After a long pause the rhythm starts anew."""
    assert next_due_s(100.0, 100_000.0, 3600.0, 0.0, 0.5) == 103_600.0


@settings(max_examples=200, deadline=None)
@given(late_s=st.floats(0, 1e7), interval_s=st.floats(5, 1e5), jitter=st.floats(0, 0.9), draw=st.floats(0, 1))
def test_next_run_lies_ahead_within_the_jitter(late_s: float, interval_s: float, jitter: float, draw: float) -> None:
    """Never in the past, never further off than an interval and its jitter."""
    due_s = next_due_s(0.0, late_s, interval_s, jitter, draw)
    assert late_s < due_s <= max(late_s, 0.0) + interval_s * (1 + jitter) * (1 + 1e-9)
