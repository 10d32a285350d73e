"""Everything that differs between two results and moves figures is said, in one line each."""

import msgspec
import pytest

from agent.bench.model import BenchResult, Step
from agent.compare.cautions import cautions
from agent.compare.model import Caution
from agent.compare.subjects import subjects
from tests.support.results import bench_result, curve, facts, machine, plain_steps, product, training


def told(*results: BenchResult) -> list[Caution]:
    """Return the cautions about results."""
    return list(cautions(subjects(results)))


def test_equal_results_raise_no_caution() -> None:
    """What does not differ is not warned of."""
    assert told(bench_result(), bench_result()) == []


@pytest.mark.parametrize(
    ("topic", "change", "detail"),
    [
        ("driver", {"driver": "550.90.07"}, "580.159.04 (made up A) against 550.90.07 (made up B)"),
        ("CUDA", {"cuda": "11.2"}, "12.5.1 (made up A) against 11.2 (made up B)"),
        ("cuDNN", {"cudnn": ""}, "9.3 (made up A) against unknown (made up B)"),
        ("TensorFlow", {"tensorflow": "2.9.0"}, "2.21.0 (made up A) against 2.9.0 (made up B)"),
        ("Python", {"python": "3.10.1"}, "3.12.3 (made up A) against 3.10.1 (made up B)"),
        ("image", {"container": "sha256:1"}, "unknown (made up A) against sha256:1 (made up B)"),
        ("hypervisor", {"hypervisor": ""}, "kvm (made up A) against unknown (made up B)"),
        ("processor", {"cpu": "Another"}, "Made-Up Processor (made up A) against Another (made up B)"),
        ("CPUs", {"cpus": 8}, "16 (made up A) against 8 (made up B)"),
        ("shared memory", {"shm_bytes": 64 << 20}, "unknown (made up A) against 0.0625 GiB"),
        ("ECC", {"cards": (facts(ecc_enabled=False),)}, "on (made up A) against off (made up B)"),
        ("MIG", {"cards": (facts(mig_enabled=None),)}, "off (made up A) against unknown (made up B)"),
        (
            "maximum clocks",
            {"cards": (facts(clock_sm_max_hertz=1.4e9),)},
            "1980 MHz and 3200 MHz (made up A) against 1400 MHz and",
        ),
        (
            "power limit",
            {"cards": (facts(power_limit_watts=500.0, power_limit_default_watts=500.0),)},
            "700 W (made up A) against 500 W (made up B)",
        ),
    ],
)
def test_a_difference_of_the_machines_is_told_with_its_effect(
    topic: str, change: dict[str, object], detail: str
) -> None:
    """One line that says whose value is which, and what it may do to the figures."""
    left, right = bench_result(), bench_result(label="made up B", on=machine(**change))

    (caution,) = told(left, right)

    assert (caution.about, caution.topic) == (("made up A", "made up B"), topic)
    assert caution.detail.startswith(detail)
    assert caution.effect
    assert caution.line.count("\n") == 0


@pytest.mark.parametrize(
    ("topic", "change"),
    [("memory limit", {"memory_limit_bytes": 2**34}), ("extent", {"extent": "quick"})],
)
def test_a_difference_of_the_runs_is_told(topic: str, change: dict[str, object]) -> None:
    """How a benchmark was run belongs to its figures."""
    quick = msgspec.structs.replace(bench_result(Step("none", ())), **change)
    assert [one.topic for one in told(bench_result(Step("none", ())), quick)] == [topic]


def test_another_method_version_is_told_for_each_probe() -> None:
    """The one difference that forbids a ranking."""
    left = bench_result(Step("matmul", (product(1e14),)), Step("resnet50", curve(10.0)))
    right = bench_result(Step("matmul", (product(1e14, method_version=2),)), Step("resnet50", curve(10.0)), label="b")

    (caution,) = told(left, right)

    assert (caution.topic, caution.detail) == ("method version", "matmul 1 (made up A) against matmul 2 (b)")


def test_power_and_clocks_of_different_models_differ_by_nature() -> None:
    """They are not warned of; a limit below the card's own default is, always."""
    small = facts("00000002", name="NVIDIA Small", power_limit_watts=60.0, power_limit_default_watts=70.0)
    other = bench_result(*plain_steps(card="00000002"), label="small", on=machine(small))

    assert [(one.about, one.topic) for one in told(bench_result(), other)] == [
        (("small",), "power limit below default")
    ]


def test_a_cpu_and_a_card_are_told_apart_once() -> None:
    """Facts of cards are not missed on a CPU."""
    cpu = bench_result(Step("resnet50", curve(3.0, card="cpu")), label="cpu", on=machine(device="cpu", cards=()))
    assert [one.topic for one in told(bench_result(), cpu)] == ["device"]


def test_disturbed_and_incomplete_results_are_told_alone() -> None:
    """No second result is needed to doubt a first one."""
    steps = Step("resnet50", curve(100.0, (16, 32), contended=True))
    incomplete = msgspec.structs.replace(bench_result(steps), complete=False)

    assert [(one.about, one.topic) for one in told(incomplete)] == [
        (("made up A",), "incomplete"),
        (("made up A",), "disturbed"),
    ]


def test_what_failed_is_told_of() -> None:
    """A result of failures only says so; that a batch found no room is a finding."""
    failed = bench_result(Step("a", (training(1.0, status="error"),)), Step("b", (training(1.0, status="timeout"),)))
    full = training(1.0, status="error")
    full = msgspec.structs.replace(full, result=msgspec.structs.replace(full.result, reason="oom:805306368"))

    (caution,) = told(failed)

    assert (caution.topic, caution.detail) == ("failed measurements", "2 of 2, the first in a: error/failed:made_up")
    assert told(bench_result(*plain_steps(), Step("search", (full,)))) == []


def test_links_are_told_of_where_there_are_several_cards() -> None:
    """They bound the scaling; one card has none."""
    pair = (facts("00000001"), facts("00000002"))
    linked = machine(*pair, topology=("gpu 0 - gpu 1: 18 NVLinks each, PCIe between NUMA nodes",))
    apart = machine(*pair, topology=("gpu 0 - gpu 1: no NVLink, PCIe between NUMA nodes",))

    (caution,) = told(bench_result(on=linked), bench_result(label="b", on=apart), bench_result(label="one"))

    assert (caution.topic, caution.about) == ("links between cards", ("made up A", "b"))
    assert "no NVLink, PCIe between NUMA nodes (b)" in caution.detail


def test_many_results_are_told_of_in_one_line_for_each_difference() -> None:
    """Who differs from whom is never left to guess, nor lost among the pairs of twenty results."""
    versions = [f"2.{minor}.0" for minor in (9, 21, 21, 15)] * 5
    results = [bench_result(label=f"r{at}", on=machine(tensorflow=of)) for at, of in enumerate(versions)]

    (caution,) = told(*results)

    assert caution.about == tuple(f"r{at}" for at in range(20))
    assert caution.detail.startswith("2.9.0 (r0, r4, r8, r12, r16) against 2.21.0 (r1, r2, r5")
    assert caution.line.startswith("TensorFlow: 2.9.0 (r0")
