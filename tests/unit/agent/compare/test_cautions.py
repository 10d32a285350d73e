"""Everything that differs between two results and moves figures is said, in one line each."""

import msgspec
import pytest

from agent.bench.model import BenchResult, Step
from agent.compare.cautions import cautions
from agent.compare.model import Caution
from agent.compare.subjects import subjects
from tests.support.results import bench_result, curve, facts, machine, plain_steps, product


def told(*results: BenchResult) -> list[Caution]:
    """Return the cautions about results."""
    return list(cautions(subjects(results)))


def test_equal_results_raise_no_caution() -> None:
    """What does not differ is not warned of."""
    assert told(bench_result(), bench_result()) == []


@pytest.mark.parametrize(
    ("topic", "change", "detail"),
    [
        ("driver", {"driver": "550.90.07"}, "580.159.04 against 550.90.07"),
        ("CUDA", {"cuda": "11.2"}, "12.5.1 against 11.2"),
        ("cuDNN", {"cudnn": ""}, "9.3 against unknown"),
        ("TensorFlow", {"tensorflow": "2.9.0"}, "2.21.0 against 2.9.0"),
        ("Python", {"python": "3.10.1"}, "3.12.3 against 3.10.1"),
        ("image", {"container": "sha256:1"}, "unknown against sha256:1"),
        ("hypervisor", {"hypervisor": ""}, "kvm against unknown"),
        ("processor", {"cpu": "Another"}, "Made-Up Processor against Another"),
        ("CPUs", {"cpus": 8}, "16 against 8"),
        ("ECC", {"cards": (facts(ecc_enabled=False),)}, "on against off"),
        ("MIG", {"cards": (facts(mig_enabled=None),)}, "off against unknown"),
        ("maximum clocks", {"cards": (facts(clock_sm_max_hertz=1.4e9),)}, "1980 MHz and 3200 MHz against 1400 MHz and"),
        (
            "power limit",
            {"cards": (facts(power_limit_watts=500.0, power_limit_default_watts=500.0),)},
            "700 W against 500 W",
        ),
    ],
)
def test_a_difference_of_the_machines_is_told_with_its_effect(
    topic: str, change: dict[str, object], detail: str
) -> None:
    """One line for the pair, and what it may do to the figures."""
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

    assert (caution.topic, caution.detail) == ("method version", "matmul: 1 against 2")


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


def test_three_results_are_told_pair_by_pair() -> None:
    """Who differs from whom is never left to guess."""
    versions = ("2.9.0", "2.15.0", "2.21.0")
    results = [bench_result(label=version, on=machine(tensorflow=version)) for version in versions]

    assert [one.about for one in told(*results)] == [("2.9.0", "2.15.0"), ("2.9.0", "2.21.0"), ("2.15.0", "2.21.0")]
