"""What people read of a result."""

import io

import msgspec
from rich.console import Console

from agent.bench.marks import MEANING
from agent.bench.model import BenchResult
from agent.bench.summary import sections, show
from agent.model.probe import Attribution
from tests.unit.agent.bench.results import MACHINE, bench_result, measured, training

GB = 10**9
STEPS = {
    "matmul": [measured("matmul", 6.6e14, "flop/s", shape="8192x8192x8192")],
    "resnet50/bf16/graph": [
        training(64, 900.0, peak_bytes=8 * GB, watts=300.0, steps_s=[0.07] * 20),
        training(256, 1000.0, peak_bytes=135 * GB, watts=500.0),
        training(512, status="error", reason="oom:805306368"),
    ],
    "accumulate": [training(64, 950.0, accumulate=4)],
    "memory/bf16": [measured("memory", 5e9, "byte", shape="64x224x224x3", figures={"optimizer_added_bytes": 2e8})],
    "scaling/2": [training(256, 1950.0, replicas=2)],
    "article/ours": [training(32, 1553.0, dtype="tf32")],
    "article/keras": [training(32, 679.0, dtype="tf32", variant="article")],
}


def page(result: BenchResult, *, terminal: bool = False) -> str:
    """Return the summary as it is printed."""
    out = io.StringIO()
    show(result, Console(file=out, width=60, force_terminal=terminal))
    return out.getvalue()


def test_each_part_that_was_measured_is_there() -> None:
    """In the order in which people ask."""
    machine = msgspec.structs.replace(MACHINE, topology=("gpu 0 - gpu 1: 18 NVLinks each",), cpus=16, cpu="Some CPU")
    text = page(bench_result(STEPS, machine))
    titles = [section.title for section in sections(bench_result(STEPS, machine))]
    assert titles == [
        "test (quick)", "Operations", "Training on one device", "Accumulated gradients", "Scaling",
        "First step and jitter", "Memory",
        "The way of the article: a Keras model in an eager loop", "Without a value",
    ]  # fmt: skip
    assert "TensorFlow 2.21.0, driver 580.159.04" in text
    assert "660 TFLOP/s" in text
    assert "gpu 0 - gpu 1: 18 NVLinks each" in text
    assert "0.975" in text
    assert "recommended batch 64: below the knee at 256" in text
    assert "error: oom:805306368" in text


def test_why_the_article_differs_is_one_sentence() -> None:
    """With both figures and their ratio."""
    text = page(bench_result(STEPS))
    (line,) = [line for line in text.splitlines() if "679 img/s" in line]
    assert "against 1,553 of our step, a factor of 2.29" in line
    assert "each operation of each step" in line
    assert "fused" not in line


def test_only_keras_3_is_said_to_lack_the_fused_normalisation() -> None:
    """Keras 2 uses TensorFlow's kernel."""
    article = STEPS["article/keras"][0]
    notes = {"2.9.0": False, "3.12.0": True}
    for version, said in notes.items():
        told = msgspec.structs.replace(
            article, result=msgspec.structs.replace(article.result, notes={"keras": version})
        )
        text = page(bench_result({"ours": STEPS["article/ours"], "keras": [told]}))
        assert ("fused kernel" in text) is said


def test_columns_that_nobody_filled_are_left_out() -> None:
    """A CPU has no watts."""
    text = page(bench_result({"step": [training(64)]}))
    assert "recommended" in text
    assert "energy/image" not in text


def test_piped_output_is_plain_and_unbroken() -> None:
    """No frames, no colours, no line cut at the width of a terminal that is not there."""
    text = page(bench_result(STEPS))
    assert text.isascii()
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) > 60


def test_a_terminal_has_frames() -> None:
    """Rich draws them."""
    assert "┃" in page(bench_result(STEPS), terminal=True)


def test_an_empty_result_says_where_it_was_made() -> None:
    """And that it is not complete."""
    result = msgspec.structs.replace(bench_result({}), complete=False)
    assert [section.title for section in sections(result)] == ["test (quick, not complete)"]


def test_what_disturbed_a_figure_stands_beside_it() -> None:
    """In every table that shows it, with one line at the end that says what that means."""
    contended = Attribution(samples=20, contended=True)
    steps = {
        name: [msgspec.structs.replace(record, attribution=contended) for record in records]
        for name, records in STEPS.items()
    }
    parts = {section.title: section for section in sections(bench_result(steps))}
    for title in ("Operations", "Training on one device", "Accumulated gradients", "Scaling", "First step and jitter"):
        assert {row[-1] for row in parts[title].rows} == {"contended"}, title
    assert list(parts)[-1] == "Marks"
    assert page(bench_result(steps)).count(MEANING) == 1
    assert "Marks" not in page(bench_result(STEPS))


def test_memory_and_figures_per_gb_have_one_unit() -> None:
    """10^9 bytes, as cards are sold."""
    text = page(bench_result(STEPS))
    assert "GiB" not in text
    (row,) = [line for line in text.splitlines() if line.startswith("resnet50 bf16 graph 224 px") and "J" in line]
    assert "8 GB" in row
    assert "112.5" in row
    assert "largest measured" in text


def test_the_shape_of_a_bandwidth_says_what_it_counts() -> None:
    """Items of four bytes."""
    text = page(bench_result({"bandwidth": [measured("bandwidth", 4e12, "byte/s", shape="1024")]}))
    assert "1024 x 4 B" in text


def test_a_failure_says_what_to_do_once() -> None:
    """That memory was too small for a batch is a finding, nothing to cure."""
    crashes = [training(64, status="error", reason="crashed:SIGABRT")] * 2
    text = page(bench_result({"a": crashes, "b": STEPS["resnet50/bf16/graph"]}))
    assert text.count("\n-> ") == 1
    assert "dmesg" in text
