"""Compares a network's gradients with finite differences, and what a step does with them; prints JSON.

Run by the interpreter under test as ``python -I gradients.py PACKAGE``.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])
sys.modules["keras"] = None  # type: ignore[assignment]

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from workloads import flops, ops, resnet, training, vgg  # noqa: E402
from workloads.dtypes import FORMATS  # noqa: E402

SIZE, BATCH, CLASSES = 16, 8, 5
REACH = 3e-4
"""How far a variable is moved each way: far enough for fp32, near enough for the kinks of ReLU."""


def tiny_resnet(parameters: ops.Parameters, size: int, classes: int) -> resnet.ResNet:
    """Return a ResNet of two blocks, the second with stride."""
    return resnet.ResNet(parameters, size, classes, blocks=(1, 1), width=4)


def tiny_vgg(parameters: ops.Parameters, size: int, classes: int) -> vgg.Vgg:
    """Return a VGG of three layers."""
    return vgg.Vgg(parameters, size, classes, stages=((4, 1), (6, 2)), hidden=10)


def slopes(step: training.TrainingStep) -> "list[list[float]]":
    """Return for each variable its slope along its gradient: by the gradient, and by the loss's own differences."""
    _, gradients = step.gradients(step.images, step.labels)
    found = []
    for variable, gradient in zip(step.parameters.variables, gradients):  # noqa: B905
        length = float(tf.norm(gradient))
        value, losses = variable.read_value(), []
        reach = REACH
        for sign in (1.0, -1.0):
            variable.assign(value + sign * reach * gradient / max(length, 1e-12))
            losses.append(float(step.loss(step.images, step.labels)))
        variable.assign(value)
        found.append([length, (losses[0] - losses[1]) / (2 * reach)])
    return found


def changes(step: training.TrainingStep) -> "list[float]":
    """Return how far each variable's change by one traced step is from rate times gradient, relative to it."""
    before = [variable.numpy() for variable in step.parameters.variables]
    _, gradients = step.gradients(step.images, step.labels)
    step.start()
    step.finish()
    found = []
    for old, variable, gradient in zip(before, step.parameters.variables, gradients):  # noqa: B905
        wanted = -training.LEARNING_RATE * gradient.numpy()
        error = np.abs(variable.numpy() - old - wanted).max()
        found.append(float(error / (np.abs(wanted).max() + 1e-7 * np.abs(old).max())))
    return found


def report() -> "dict[str, object]":
    """Return all comparisons."""
    found: dict[str, object] = {}
    for name, network in (("resnet", tiny_resnet), ("vgg", tiny_vgg)):
        step = training.TrainingStep(network, FORMATS["fp32"], BATCH, SIZE, CLASSES, device="/CPU:0", seed=3)
        found[name] = {"slopes": slopes(step), "changes": changes(step)}
    full = training.TrainingStep(resnet.ResNet, FORMATS["fp32"], 1, 224, 1000, device="/CPU:0")
    work = flops.count(full.trace())
    found["flops"] = work
    found["variables"] = len(full.parameters.variables)
    found["parameters"] = int(sum(np.prod(variable.shape) for variable in full.parameters.variables))
    return found


print(json.dumps(report()))
