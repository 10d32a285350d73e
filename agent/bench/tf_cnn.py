"""The familiar lines of tf_cnn_benchmarks, made from a measured series of single steps, so that old parsers work.

Of n steps of b images (all cards and accumulated batches together) that took t_1 … t_n seconds, each waited for:

* ``images/sec`` after k steps: b / mean(t_1 … t_k);
* ``+/-``: the standard error of the mean of the single rates b/t_i, that is their standard deviation over √k;
* ``jitter``: 1.4826 times the median absolute deviation of the single rates from their median, which for normal
  noise is their standard deviation;
* ``total_loss``: the loss of step k, as computed by the step itself;
* ``total images/sec``: n·b / (t_1 + … + t_n).

The warm-up precedes the series and is not in it. Since each step is waited for, the total is a little below the
throughput that the other formats show, whose steps follow one another without a wait.
"""

from collections.abc import Iterator, Sequence
from statistics import median, pstdev
from typing import Final

from agent.bench.model import BenchResult
from agent.bench.points import Point, points

EVERY: Final = 10
_MAD_TO_DEVIATION: Final = 1.4826
_RULE: Final = "-" * 64


def chosen(result: BenchResult) -> Point | None:
    """Return the point whose series is shown: the first of ResNet-50 with one, else of any network; None for none."""
    timed = [point for point in points(result) if step_times_s(point)]
    return next((point for point in timed if point.network == "resnet50"), next(iter(timed), None))


def lines(point: Point, tensorflow: str) -> Iterator[str]:
    """Yield header, a line for step 1 and for each tenth one, and the total."""
    steps_s, losses = step_times_s(point), point.record.result.series.get("loss", ())
    images = point.batch * point.replicas * point.accumulate
    yield from _header(point, tensorflow, len(steps_s), images)
    yield "Step\tImg/sec\ttotal_loss"
    for step in range(1, len(steps_s) + 1):
        if step == 1 or step % EVERY == 0:
            loss = f"{losses[step - 1]:.3f}" if len(losses) >= step else "nan"
            yield f"{step}\t{rates(steps_s[:step], images)}\t{loss}"
    yield _RULE
    yield f"total images/sec: {len(steps_s) * images / sum(steps_s):.2f}"
    yield _RULE


def rates(steps_s: Sequence[float], images: int) -> str:
    """Return mean rate, its standard error and the jitter of single steps of ``images`` images, in images a second."""
    single = [images / step_s for step_s in steps_s]
    middle = median(single)
    jitter = _MAD_TO_DEVIATION * median(abs(rate - middle) for rate in single)
    mean = images * len(steps_s) / sum(steps_s)
    return f"images/sec: {mean:.1f} +/- {pstdev(single) / len(single) ** 0.5:.1f} (jitter = {jitter:.1f})"


def step_times_s(point: Point) -> tuple[float, ...]:
    """Return the seconds of each step that was waited for; empty where none was."""
    return point.record.result.series.get("step_s", ())


def _header(point: Point, tensorflow: str, steps: int, images: int) -> Iterator[str]:
    kind = "cpu" if point.record.uuid == "cpu" else "gpu"
    devices = ", ".join(f"'/{kind}:{index}'" for index in range(point.replicas))
    rows = {
        "TensorFlow": tensorflow,
        "Model": point.network,
        "Dataset": f"synthetic, {point.size} px",
        "Mode": f"training, {point.dtype}, {point.mode}, measured by heatsoak",
        "Batch size": f"{images} global",
        "": f"{point.batch} per device",
        "Num batches": str(steps),
        "Devices": f"[{devices}]",
        "Data format": "NHWC",
        "Optimizer": "sgd",
    }
    for name, value in rows.items():
        yield f"{name + ':' if name else '':<13}{value}"
    yield "=========="
