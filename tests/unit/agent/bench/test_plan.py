"""The plans: complete, unambiguous, and in the time they promise."""

from typing import Literal

import pytest

from agent.bench.plan import PlannedStep, plan
from agent.model.probe import DeviceKind, ProbeRequest

QUICK_S, FULL_S = 300.0, 3600.0
Extent = Literal["quick", "full"]
EXTENTS: tuple[Extent, ...] = ("quick", "full")
DEVICES: tuple[DeviceKind, ...] = ("gpu", "cpu")


def requests(steps: tuple[PlannedStep, ...], probe: str) -> list[ProbeRequest]:
    """Return all requests of a probe."""
    return [request for step in steps for request in step.requests if request.probe == probe]


@pytest.mark.parametrize("extent", EXTENTS)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cards", [1, 2, 6])
def test_each_step_has_a_name_of_its_own(extent: Extent, device: DeviceKind, cards: int) -> None:
    """A result is gone on with by names; only a probe with one result shares its child with others."""
    steps = plan(extent, device, cards, article=True)
    names = [step.name for step in steps]
    assert len(set(names)) == len(names)
    for step in steps:
        assert 0 < step.expected_s < step.deadline_s
        assert len(step.requests) == 1 or {one.probe for one in step.requests} <= {"matmul", "resnet50", "vgg16"}


def test_quick_takes_five_minutes() -> None:
    """On the card that the expectations were made on."""
    assert sum(step.expected_s for step in plan("quick", "gpu")) <= QUICK_S
    assert sum(step.expected_s for step in plan("full", "gpu")) <= FULL_S


def test_full_covers_every_precision_mode_and_resolution() -> None:
    """With a search for the largest batch in one precision of each width."""
    steps = plan("full", "gpu")
    precisions = {"bf16", "fp16", "tf32", "fp32"}
    assert {request.dtype for request in requests(steps, "matmul")} == precisions | {"fp64"}
    for network in ("resnet50", "vgg16"):
        own = [step for step in steps if step.name.startswith(network)]
        searched = {step.requests[0].dtype for step in own if step.search_to}
        assert searched == {"bf16", "tf32"}
        for mode in ("graph", "xla"):
            found = {request.dtype for step in own for request in step.requests if request.mode == mode}
            assert found == precisions
    assert {request.size for request in requests(steps, "resnet50")} == {32, 224, 384, 512}
    assert (32, 64) in {(request.size, request.batch) for request in requests(steps, "resnet50")}
    assert any(step.reserve_all for step in steps)
    assert any(step.memory_limit_bytes for step in steps)
    assert requests(steps, "pipeline")
    assert requests(steps, "bandwidth")


def test_first_steps_are_measured_before_anything_is_compiled() -> None:
    """Else they would come out of the compilation cache."""
    assert [step.name for step in plan("full", "gpu")][:2] == ["cold/graph", "cold/xla"]


def test_scaling_doubles_up_to_all_cards() -> None:
    """One card among them, measured at the same time; a CPU and a single card have none."""
    steps = plan("quick", "gpu", 6)
    assert [step.cards for step in steps if step.name.startswith("scaling/")] == [1, 2, 4, 6]
    assert not [step for step in plan("full", "gpu", 1) if step.name.startswith("scaling/")]
    assert not [step for step in plan("full", "cpu") if step.cards > 1]


def test_article_stands_beside_our_own_step() -> None:
    """The same request but for the method."""
    for device in DEVICES:
        both = {step.name: step for step in plan("quick", device, article=True)}
        ours, keras = both["article/ours"], both["article/keras"]
        assert "article/ours" not in {step.name for step in plan("quick", device)}
        assert ours.requests[0].options == {}
        assert keras.requests[0].options == {"method": "article"}
        assert (ours.requests[0].batch, ours.requests[0].size) == (keras.requests[0].batch, keras.requests[0].size)


def test_a_limit_for_all_leaves_no_way_to_take_memory_to_compare() -> None:
    """Reserving all is not possible below a limit."""
    assert not any(step.reserve_all or step.memory_limit_bytes for step in plan("full", "gpu", memory_limit_bytes=1))


def test_pipeline_reads_the_images_that_were_named() -> None:
    """Made ones where none were."""
    assert requests(plan("full", "cpu", data_dir="/data"), "pipeline")[0].options == {"data_dir": "/data"}
    assert requests(plan("quick", "gpu"), "pipeline")[0].options == {}
