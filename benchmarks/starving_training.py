"""A training process that starves, or does not, for the input-bound verdict to see on a real card.

    python3 -m benchmarks.starving_training --feed serial --seconds 75
    taskset -c 0-3 python3 -m benchmarks.starving_training --feed tuned --seconds 75
    python3 -m benchmarks.starving_training --feed tuned --seconds 75

It trains ResNet-50 in bf16 on generated JPEG images of 500 x 375 pixels, through tf.data: ``serial`` decodes one image
after the other and prefetches nothing, ``tuned`` leaves parallelism to tf.data. Prints one JSON line at the end.
"""

import argparse
import json
import tempfile
import time

import tensorflow as tf

from workloads import images, pipeline
from workloads.dtypes import FORMATS
from workloads.resnet import ResNet
from workloads.step import TrainingStep

_FILES = 512


def main() -> None:
    """Train for as long as asked and print how fast it went."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--feed", choices=("serial", "tuned", "synthetic"), required=True)
    parser.add_argument("--seconds", type=float, default=75.0)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--device", default="/GPU:0")
    arguments = parser.parse_args()
    step = TrainingStep(ResNet, FORMATS["bf16"], arguments.batch, arguments.size, 1000, device=arguments.device)
    with tempfile.TemporaryDirectory(prefix="heatsoak-images-") as folder:
        paths = images.make(folder, _FILES, 0)
        dataset = pipeline.make_dataset(
            paths, arguments.batch, arguments.size, step.parameters.compute, tuned=arguments.feed == "tuned"
        )
        feed = pipeline.Feed(dataset)
        steps, begun_s = 0, time.monotonic()
        while (elapsed_s := time.monotonic() - begun_s) < arguments.seconds:
            step.feed(step.data[0] if arguments.feed == "synthetic" else feed.next(), step.data[1])
            steps += 1
            if steps % 4 == 0:
                step.finish()
    rate = steps * arguments.batch / elapsed_s
    print(
        json.dumps({"feed": arguments.feed, "cpus": pipeline.cpus(), "images_per_second": rate, "tf": tf.__version__})
    )


if __name__ == "__main__":
    main()
