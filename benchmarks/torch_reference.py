"""What PyTorch reaches on the same card, for comparison: one JSON document per case on standard output.

    python3 benchmarks/torch_reference.py matmul:bf16:8192 resnet50:autocast:256:eager resnet50:tf32:32:eager

A matmul case names data type and side; a ResNet-50 case names how it computes (``autocast`` keeps weights in fp32,
``bf16`` holds everything in it, ``tf32`` is fp32 with TF32 allowed), the batch, and ``eager`` or ``compile``. Both
settle for 1 s at load and are then timed for 2 s, in batches that end with one synchronisation; the median counts.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable

import timm
import torch

SETTLE_S, WINDOW_S = 1.0, 2.0
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32, "fp32": torch.float32}


def median_step_s(step: Callable[[], object], steps: int) -> dict[str, float]:
    """Return the median seconds of a step, over batches of ``steps`` of them."""
    first_s = batch_s(step, 1)
    end_s = time.monotonic() + SETTLE_S
    while time.monotonic() < end_s:
        batch_s(step, steps)
    repeats = []
    end_s = time.monotonic() + WINDOW_S
    while time.monotonic() < end_s or len(repeats) < 3:
        repeats.append(batch_s(step, steps) / steps)
    return {"step_s": statistics.median(repeats), "repeats": len(repeats), "steps": steps, "first_call_s": first_s}


def batch_s(step: Callable[[], object], steps: int) -> float:
    """Return how long a batch of steps takes."""
    start_s = time.monotonic()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return time.monotonic() - start_s


def matmul(dtype: str, side: int) -> dict[str, object]:
    """Time products of random normal matrices."""
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    left, right = (torch.randn(side, side, device="cuda", dtype=DTYPES[dtype]) for _ in range(2))
    out = torch.empty_like(left)
    timed = median_step_s(lambda: torch.matmul(left, right, out=out), max(1, round(50 * (8192 / side) ** 3)))
    return {"flop_per_second": 2 * side**3 / timed["step_s"], **timed}


def resnet50(kind: str, batch: int, how: str) -> dict[str, object]:
    """Time a training step: forward, backward, SGD."""
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    layout = torch.contiguous_format if kind == "tf32" else torch.channels_last
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32
    model = timm.create_model("resnet50").to(device="cuda", dtype=dtype, memory_format=layout).train()
    run = torch.compile(model) if how == "compile" else model
    images = torch.randn(batch, 3, 224, 224, device="cuda", dtype=dtype).contiguous(memory_format=layout)
    labels = torch.randint(0, 1000, (batch,), device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loss_of = torch.nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16, enabled=kind == "autocast"):
            loss = loss_of(run(images).float(), labels)
        loss.backward()
        optimizer.step()

    timed = median_step_s(step, 3 if batch >= 128 else 10)
    return {"images_per_second": batch / timed["step_s"], "peak_bytes": torch.cuda.max_memory_allocated(), **timed}


def main() -> None:
    """Time each case named on the command line."""
    for case in sys.argv[1:]:
        what, *rest = case.split(":")
        result = matmul(rest[0], int(rest[1])) if what == "matmul" else resnet50(rest[0], int(rest[1]), rest[2])
        torch.cuda.empty_cache()
        print(json.dumps({"case": case, "torch": torch.__version__, **result}), flush=True)


if __name__ == "__main__":
    main()
