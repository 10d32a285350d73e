"""Compares gradients with finite differences, and ways to train with each other; prints JSON.

Run by the interpreter under test as ``python -I gradients.py PACKAGE``.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
sys.modules["keras"] = None  # type: ignore[assignment]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from workloads import flops, ops, resnet, vgg  # noqa: E402
from workloads.accumulation import AccumulatedStep  # noqa: E402
from workloads.dtypes import FORMATS  # noqa: E402
from workloads.replication import ReplicatedStep  # noqa: E402
from workloads.step import LEARNING_RATE, TrainingStep, draw  # noqa: E402

SIZE, BATCH, CLASSES = 16, 8, 5
REACH = 3e-4
"""How far a variable is moved each way: far enough for fp32, near enough for the kinks of ReLU."""


def tiny_resnet(parameters: ops.Parameters, size: int, classes: int) -> resnet.ResNet:
    """Return a ResNet of two blocks, the second with stride."""
    return resnet.ResNet(parameters, size, classes, blocks=(1, 1), width=4)


def tiny_vgg(parameters: ops.Parameters, size: int, classes: int) -> vgg.Vgg:
    """Return a VGG of three layers."""
    return vgg.Vgg(parameters, size, classes, stages=((4, 1), (6, 2)), hidden=10)


def slopes(step: TrainingStep) -> "list[list[float]]":
    """Return for each variable its slope along its gradient: by the gradient, and by the loss's own differences."""
    _, gradients = step.gradients(*step.data)
    found = []
    for variable, gradient in zip(step.parameters.variables, gradients):  # noqa: B905
        length = float(tf.norm(gradient))
        value, losses = variable.read_value(), []
        reach = REACH
        for sign in (1.0, -1.0):
            variable.assign(value + sign * reach * gradient / max(length, 1e-12))
            losses.append(float(step.loss_of(*step.data)))
        variable.assign(value)
        found.append([length, (losses[0] - losses[1]) / (2 * reach)])
    return found


def changes(step: TrainingStep) -> "list[float]":
    """Return how far each variable's change by one traced step is from rate times gradient, relative to it."""
    before = [variable.numpy() for variable in step.parameters.variables]
    _, gradients = step.gradients(*step.data)
    step.start()
    step.finish()
    found = []
    for old, variable, gradient in zip(before, step.parameters.variables, gradients):  # noqa: B905
        wanted = -LEARNING_RATE * gradient.numpy()
        error = np.abs(variable.numpy() - old - wanted).max()
        found.append(float(error / (np.abs(wanted).max() + 1e-7 * np.abs(old).max())))
    return found


def relative(ours: "list[np.ndarray]", theirs: "list[np.ndarray]", start: "list[np.ndarray]") -> float:
    """Return the largest difference of two sets of variables, over how far they moved from ``start``."""
    pairs = list(zip(ours, theirs, start))  # noqa: B905
    return max(float(np.abs(a - b).max()) for a, b, _ in pairs) / max(float(np.abs(b - c).max()) for _, b, c in pairs)


def values(step: TrainingStep) -> "list[np.ndarray]":
    """Return the variables as they are."""
    return [variable.numpy() for variable in step.parameters.variables]


def vgg_step(batch: int) -> TrainingStep:
    """Return a step whose network has no batch normalisation: its gradient over a batch is the mean of its parts'."""
    return TrainingStep(tiny_vgg, FORMATS["fp32"], batch, SIZE, CLASSES, device="/CPU:0", seed=3)


def accumulated() -> "dict[str, object]":
    """Compare three steps of two batches each with three steps on one of them: the same mean gradient."""
    one, other = vgg_step(BATCH), vgg_step(BATCH)
    start, summed = values(one), AccumulatedStep(other, 2)
    for _ in range(3):
        one.start()
        summed.start()
    summed.finish()
    return {
        "difference": relative(values(other), values(one), start),
        "losses": [one.loss(), summed.loss()],
        "left": float(max(tf.reduce_max(tf.abs(total)) for total in summed.sums)),
        "images": summed.images,
        "held": summed.held_bytes / (4.0 * sum(np.prod(variable.shape) for variable in other.parameters.variables)),
        "work": sum(summed.operations().values()) / sum(one.operations().values()),
    }


def replicated() -> "dict[str, object]":
    """Compare three steps of two replicas with three of one device on their joint batch."""
    half = BATCH // 2
    batches = [draw(half, SIZE, CLASSES, tf.float32, f"/CPU:{index}", 3 + index) for index in (0, 1)]
    pair = ReplicatedStep(["/CPU:0", "/CPU:1"], lambda: vgg_step(half), lambda index: batches[index])
    start = [first.numpy() for first, _ in pair.parameters()]
    alone = vgg_step(BATCH)
    joint = [tf.concat([batch[part] for batch in batches], 0) for part in (0, 1)]
    for _ in range(3):
        pair.start()
        alone.feed(*joint)
    losses = [pair.loss(), alone.loss()]
    return {
        "difference": max(
            relative([replica[place].numpy() for replica in pair.parameters()], values(alone), start)
            for place in (0, 1)
        ),
        "between": max(float(tf.reduce_max(tf.abs(a - b))) for a, b in pair.parameters()),
        "losses": losses,
        "data_differ": float(tf.reduce_mean(tf.abs(batches[0][0] - batches[1][0]))),
        "images": pair.images,
        "work": sum(pair.operations().values()) / sum(alone.operations().values()),
        "devices": sorted({each.device[-5:] for replicas in pair.parameters() for each in replicas}),
    }


def narrow_resnet(parameters: ops.Parameters, size: int, classes: int) -> resnet.ResNet:
    """Return a ResNet-50 of a sixteenth of the channels."""
    return resnet.ResNet(parameters, size, classes, width=4)


def narrow_vgg(parameters: ops.Parameters, size: int, classes: int) -> vgg.Vgg:
    """Return a VGG of five stages of one layer each."""
    return vgg.Vgg(parameters, size, classes, stages=((4, 1),) * 5, hidden=10)


def sizes() -> "dict[str, list[float]]":
    """Return the loss of a narrow network of full depth at each resolution."""
    found: dict[str, list[float]] = {"resnet50": [], "vgg16": []}
    for size in (224, 384, 512):
        for name, network in (
            ("resnet50", narrow_resnet),
            ("vgg16", narrow_vgg),
        ):
            step = TrainingStep(network, FORMATS["fp32"], 1, size, CLASSES, device="/CPU:0")
            found[name].append(float(step.loss_of(*step.data)))
    return found


def report() -> "dict[str, object]":
    """Return all comparisons."""
    found: dict[str, object] = {}
    for name, network in (("resnet", tiny_resnet), ("vgg", tiny_vgg)):
        step = TrainingStep(network, FORMATS["fp32"], BATCH, SIZE, CLASSES, device="/CPU:0", seed=3)
        found[name] = {"slopes": slopes(step), "changes": changes(step)}
    found.update({"accumulated": accumulated(), "replicated": replicated(), "sizes": sizes()})
    full = TrainingStep(resnet.ResNet, FORMATS["fp32"], 1, 224, 1000, device="/CPU:0")
    work = flops.count(full.trace())
    found["flops"] = work
    found["variables"] = len(full.parameters.variables)
    found["parameters"] = int(sum(np.prod(variable.shape) for variable in full.parameters.variables))
    return found


two = [tf.config.LogicalDeviceConfiguration() for _ in range(2)]
tf.config.set_logical_device_configuration(tf.config.list_physical_devices("CPU")[0], two)
print(json.dumps(report()))
