"""Runs the child with a probe that trains and then finds no memory, as a batch too large does; for ``vgg16``.

Run by the interpreter under test as ``python -I exhausted.py PACKAGE RESULT_FD``.
"""

import sys
from types import SimpleNamespace

sys.path.insert(0, sys.argv[1])

from workloads import session, spec
from workloads.context import Context
from workloads.emit import Emitter
from workloads.timing import SystemClock


def run(context: Context) -> None:
    """Train once, then fail as TensorFlow's allocator does."""
    import tensorflow as tf

    from workloads import training

    step = training.build(context, context.number_format())
    step.start()
    step.finish()
    raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating tensor with shape[256,1024] and type float")


sys.modules["exhausted"] = SimpleNamespace(run=run)  # type: ignore[assignment]
modules = {**session.MODULES, "vgg16": "exhausted"}
clock = SystemClock()
asked = spec.parse(sys.stdin.read())
session.run(asked, Emitter(int(sys.argv[2])), clock, clock.monotonic_s(), modules)
