"""Headline figures: which are told, and that only like stands beside like."""

import msgspec

from agent.bench.model import BenchResult, Machine, Step
from agent.compare.headlines import headlines
from agent.model.probe import ProbeRecord
from tests.unit.agent.bench.results import bench_result, measured, training


def told(*results: BenchResult) -> dict[str, tuple[float | None, ...]]:
    """Return the values of each headline by its name."""
    found = headlines(results)
    assert len({one.name for one in found}) == len(found)
    return {one.name: one.values for one in found}


def of(*records: ProbeRecord, limit_bytes: int = 0) -> BenchResult:
    """Return a result of some measurements."""
    return bench_result({"step": records}, memory_limit_bytes=limit_bytes)


def versioned(record: ProbeRecord, version: int) -> ProbeRecord:
    """Return a measurement by another version of its method."""
    return msgspec.structs.replace(record, result=msgspec.structs.replace(record.result, method_version=version))


def test_headlines_are_named_once_and_say_which_must_repeat() -> None:
    """Our own step at 224 px in its fastest batch; the first card's products; host-bound figures need not repeat."""
    records = [
        training(64, 900.0, watts=300.0), training(256, 1000.0, watts=500.0), training(64, 4000.0, size=32),
        training(64, 100.0, variant="article"), training(8, 50.0, dtype="tf32", host_share=0.6),
        training(64, 1500.0, replicas=2), training(256, 1950.0, replicas=2),
        training(8, 80.0, dtype="tf32", replicas=2),
    ]  # fmt: skip
    operations = [
        measured("matmul", 6.6e14, "flop/s"),
        measured("matmul", 6.5e14, "flop/s"),
        measured("bandwidth", 4e12, "byte/s", dtype="", variant="device_copy"),
        measured("bandwidth", 4e10, "byte/s", dtype="", variant="device_to_host"),
    ]
    found = headlines([bench_result({"matmul": operations, "train": records})])
    assert [(one.name, one.values[0], one.unit, one.repeatable) for one in found] == [
        ("matmul bf16", 6.6e14, "flop/s", True),
        ("bandwidth device copy", 4e12, "byte/s", True),
        ("bandwidth device to host", 4e10, "byte/s", False),
        ("resnet50 bf16 graph, batch 256", 1000.0, "images/s", True),
        ("resnet50 bf16 graph, batch 256, per watt", 2.0, "images/s/W", False),
        ("resnet50 bf16 graph, batch 256, energy", 0.5, "J/image", False),
        ("resnet50 tf32 graph, batch 8", 50.0, "images/s", False),
        ("resnet50 bf16 graph, batch 64 on 2 cards", 1500.0, "images/s", True),
        ("resnet50 bf16 graph, batch 64 on 2 cards, efficiency", 1500 / 1800, "", True),
        ("resnet50 bf16 graph, batch 256 on 2 cards", 1950.0, "images/s", True),
        ("resnet50 bf16 graph, batch 256 on 2 cards, efficiency", 0.975, "", True),
        ("resnet50 tf32 graph, batch 8 on 2 cards", 80.0, "images/s", False),
        ("resnet50 tf32 graph, batch 8 on 2 cards, efficiency", 0.8, "", False),
    ]


def test_headlines_of_a_cpu_are_those_of_its_largest_images_and_need_not_repeat() -> None:
    """Nobody promises that a shared host's CPUs are equally fast twice."""
    result = bench_result({"step": [training(2, 9.0, size=32), training(2, 5.0, size=64)]}, Machine("cpu"))
    (found,) = headlines([result])
    assert (found.name, found.values, found.repeatable) == ("resnet50 bf16 graph 64 px, batch 2", (5.0,), False)
    assert headlines([of()]) == ()


def test_a_quick_run_meets_a_full_one_where_both_measured() -> None:
    """The full one's larger images and other batches are no second opinion on the quick one's."""
    quick = of(training(4, 14.0, size=32), training(8, 22.0, size=32))
    full = of(training(8, 20.0, size=32), training(2, 9.0, size=96), training(16, 30.0, size=32))

    assert told(quick, full) == {"resnet50 bf16 graph 32 px, batch 8": (22.0, 20.0)}


def test_figures_of_other_batches_stand_in_rows_of_their_own() -> None:
    """Where nothing is shared each result keeps its best."""
    assert told(of(training(64, 900.0)), of(training(256, 1000.0))) == {
        "resnet50 bf16 graph, batch 64": (900.0, None),
        "resnet50 bf16 graph, batch 256": (None, 1000.0),
    }


def test_most_results_decide_and_none_is_lost() -> None:
    """Two have batch 64, the third one speaks for itself."""
    both = of(training(64, 900.0), training(256, 1000.0))
    assert told(both, of(training(64, 880.0)), of(training(32, 700.0))) == {
        "resnet50 bf16 graph, batch 64": (900.0, 880.0, None),
        "resnet50 bf16 graph, batch 32": (None, None, 700.0),
    }


def test_products_of_other_shapes_are_not_held_against_each_other() -> None:
    """The name says the shape where it tells two apart, and not where all have the same."""
    small, large = (measured("matmul", 5e13, "flop/s", shape=f"{n}x{n}x{n}") for n in (512, 8192))

    assert told(of(small), of(small)) == {"matmul bf16": (5e13, 5e13)}
    assert told(of(small), of(large)) == {
        "matmul bf16, 512x512x512": (5e13, None),
        "matmul bf16, 8192x8192x8192": (None, 5e13),
    }


def test_other_methods_are_not_held_against_each_other() -> None:
    """Neither in training nor in products."""
    old, new = training(64, 900.0), measured("matmul", 6e14, "flop/s")
    assert told(of(old, new), of(versioned(old, 2), versioned(new, 2))) == {
        "matmul bf16, method 0": (6e14, None),
        "matmul bf16, method 2": (None, 6e14),
        "resnet50 bf16 graph, batch 64, method 0": (900.0, None),
        "resnet50 bf16 graph, batch 64, method 2": (None, 900.0),
    }


def test_a_card_that_plays_a_smaller_one_is_not_held_against_the_whole() -> None:
    """Its largest batch is not the other's."""
    record = training(64, 900.0)
    limited = bench_result({}, memory_limit_bytes=2**34)
    limited = msgspec.structs.replace(limited, steps=(Step("step", (record,), 2**34),))

    assert told(of(record), limited) == {
        "resnet50 bf16 graph, batch 64, no memory limit": (900.0, None),
        "resnet50 bf16 graph, batch 64, limit 16 GiB": (None, 900.0),
    }
