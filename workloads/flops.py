"""Counts the multiply-add work of a traced graph: convolutions, their gradients, and matrix products."""

from __future__ import annotations

from typing import Dict

from workloads.untyped import Graph, Operation

CONVOLUTIONS = ("Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter")


def count(graph: Graph) -> Dict[str, float]:
    """Return floating point operations by operation type, 2 for each multiply-add."""
    totals: Dict[str, float] = {}
    for operation in graph.get_operations():
        if operation.type in CONVOLUTIONS:
            amount = _convolution(operation)
        elif operation.type == "MatMul":
            amount = _product(operation)
        else:
            continue
        totals[operation.type] = totals.get(operation.type, 0.0) + amount
    return totals


def _convolution(operation: Operation) -> float:
    """All three share one count: 2 · outputs of the forward convolution · kernel area · input channels."""
    if operation.type == "Conv2D":
        kernel, outputs = operation.inputs[1].shape, operation.outputs[0].shape
    elif operation.type == "Conv2DBackpropInput":
        kernel, outputs = operation.inputs[1].shape, operation.inputs[2].shape
    else:
        kernel, outputs = operation.outputs[0].shape, operation.inputs[2].shape
    return 2.0 * int(outputs.num_elements() * kernel[0] * kernel[1] * kernel[2])


def _product(operation: Operation) -> float:
    left, outputs = operation.inputs[0].shape, operation.outputs[0].shape
    inner = left[0 if operation.get_attr("transpose_a") else 1]
    return 2.0 * int(outputs.num_elements() * inner)
