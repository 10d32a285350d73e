"""The familiar lines, read the way old scripts read them."""

import re
import subprocess
from pathlib import Path

import pytest

from agent.bench.points import points
from agent.bench.tf_cnn import chosen, lines, rates
from tests.unit.agent.bench.results import bench_result, training

STEPS_S = [0.25 + 0.01 * (at % 3) for at in range(25)]
LOSSES = [7.0 - 0.1 * at for at in range(25)]


def text(*, replicas: int = 1, accumulate: int = 1) -> str:
    """Return the lines of 25 steps of 64 images."""
    record = training(64, steps_s=STEPS_S, losses=LOSSES, replicas=replicas, accumulate=accumulate)
    (point,) = points(bench_result({"step": [record]}))
    return "\n".join(lines(point, "2.21.0"))


def test_old_parsers_find_the_total(tmp_path: Path) -> None:
    """All images over all of the time."""
    (tmp_path / "log").write_text(text() + "\n")
    command = f"grep 'total images/sec' {tmp_path}/log | awk '{{print $3}}'"
    out = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout
    assert float(out) == pytest.approx(25 * 64 / sum(STEPS_S), abs=0.005)


def test_first_and_each_tenth_step_have_a_line() -> None:
    """Step, mean rate so far, its error, jitter, loss, between tabs."""
    after = text().partition("Step\tImg/sec\ttotal_loss\n")[2].splitlines()
    form = re.compile(r"(\d+)\timages/sec: ([\d.]+) \+/- ([\d.]+) \(jitter = ([\d.]+)\)\t([\d.]+)")
    found = [form.fullmatch(line) for line in after[:-3]]
    assert [match[1] for match in found if match] == ["1", "10", "20"]
    first = form.fullmatch(after[0])
    assert first
    assert first.groups()[1:] == ("256.0", "0.0", "0.0", "7.000")
    tenth = form.fullmatch(after[1])
    assert tenth
    assert float(tenth[2]) == pytest.approx(10 * 64 / sum(STEPS_S[:10]), abs=0.05)
    assert tenth[5] == "6.100"


def test_images_of_all_cards_and_batches_count() -> None:
    """Two cards with two batches each make four times 64."""
    page = text(replicas=2, accumulate=2)
    assert "Batch size:  256 global\n             64 per device" in page
    assert "['/gpu:0', '/gpu:1']" in page
    assert f"total images/sec: {25 * 256 / sum(STEPS_S):.2f}" in page


def test_error_and_jitter_of_the_rates() -> None:
    """Rates 100, 200, 400: deviation 124.7 over the root of 3; the middle deviation from 200 is 100, times 1.4826."""
    assert rates([1.0, 0.5, 0.25], 100) == "images/sec: 171.4 +/- 72.0 (jitter = 148.3)"


def test_a_series_without_losses_says_so() -> None:
    """No made-up number."""
    (point,) = points(bench_result({"step": [training(64, steps_s=STEPS_S)]}))
    assert list(lines(point, ""))[-4].endswith("\tnan")


def test_resnet_is_shown_before_other_networks() -> None:
    """The first with a series; None where no step was timed alone."""
    series = training(32, steps_s=STEPS_S)
    vgg = training(16, network="vgg16", steps_s=STEPS_S)
    point = chosen(bench_result({"step": [training(64), vgg, series]}))
    assert point is not None
    assert (point.network, point.batch) == ("resnet50", 32)
    assert chosen(bench_result({"step": [training(64)]})) is None
