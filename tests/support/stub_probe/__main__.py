"""Reads a child specification and plays the behaviour that the first request or STUB_BEHAVIOUR names."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

FIGURES = {
    "matmul": (6.6e14, "flop/s"),
    "resnet50": (2000.0, "images/s"),
    "vgg16": (900.0, "images/s"),
    "bandwidth": (4e12, "byte/s"),
    "pipeline": (1500.0, "images/s"),
}
FOREVER_S = 600


def write(text: str | bytes) -> None:
    """Send bytes on the result descriptor, whole."""
    data = text.encode() if isinstance(text, str) else text
    while data:
        data = data[os.write(int(sys.argv[-1]), data) :]


def emit(event: str, **values: object) -> None:
    """Send one event."""
    write(json.dumps({"event": event, **values}) + "\n")


def hello(spec: dict[str, Any], **device: object) -> None:
    """Say where we run: on the card asked for, unless told to claim another."""
    claimed = {"kind": spec["device"], "uuid": spec["gpu_uuid"], "pci_bus_id": spec["pci_bus_id"], **device}
    emit("hello", version=1, environment={"python": "3", "tensorflow": "2.21.0"}, device=claimed, startup_s=0.1)


def result(index: int, request: dict[str, Any], window_s: float, **changes: object) -> None:
    """Measure nothing for ``window_s`` seconds and answer with a plausible number."""
    emit("phase", request=index, phase="timed", monotonic_s=time.monotonic())
    start_s = time.monotonic()
    time.sleep(window_s)
    timing = {
        "median_s": 0.1,
        "min_s": 0.09,
        "max_s": 0.11,
        "mad_s": 0.001,
        "repeats": 10,
        "inner": 20,
        "first_call_s": 1.0,
        "warmup_s": 1.0,
    }
    answer = {
        "probe": request["probe"],
        "status": "ok",
        "dtype": request.get("dtype", ""),
        "shape": "64x64x64",
        "method_version": 1,
        "value": FIGURES[request["probe"]][0],
        "unit": FIGURES[request["probe"]][1],
        "timing": timing,
        "window_start_monotonic_s": start_s,
        "window_end_monotonic_s": time.monotonic(),
    }
    emit("result", **{**answer, **changes})


def well(spec: dict[str, Any], window_s: float = 0.0, **device: object) -> None:
    """Answer every request, in a quarter of the time it may take."""
    hello(spec, **device)
    for index, request in enumerate(spec["requests"]):
        result(index, request, window_s or max(0.1, request.get("seconds", 0.0) / 4))
    emit("done", cpu_s=0.5, host_peak_bytes=1000)


def hang(_spec: dict[str, Any]) -> None:
    """Say nothing and never end."""
    time.sleep(FOREVER_S)


def hang_deaf(spec: dict[str, Any]) -> None:
    """Ignore SIGTERM and never end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hello(spec)
    print("deaf", flush=True)
    time.sleep(FOREVER_S)


def long(spec: dict[str, Any]) -> None:
    """Measure for longer than anybody waits."""
    well(spec, window_s=FOREVER_S)


def slow(spec: dict[str, Any]) -> None:
    """Measure for a second and a half."""
    well(spec, window_s=1.5)


def abort(_spec: dict[str, Any]) -> None:
    """Die of SIGABRT."""
    os.abort()


def kill(_spec: dict[str, Any]) -> None:
    """Die of SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def exit_137(_spec: dict[str, Any]) -> None:
    """End as a shell does whose child was killed."""
    print("Killed", flush=True)
    sys.exit(137)


def double_fork(spec: dict[str, Any]) -> None:
    """Leave a daemon in a session of its own that holds standard output, then answer."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            print(f"daemon {os.getpid()}", flush=True)
            time.sleep(FOREVER_S)
        os._exit(0)
    time.sleep(0.3)
    well(spec)


def grandchild(_spec: dict[str, Any]) -> None:
    """Leave a grandchild in the same session that holds standard output, and die."""
    child = subprocess.Popen(["/bin/sleep", str(FOREVER_S)])
    print(f"daemon {child.pid}", flush=True)
    sys.exit(3)


def noise(spec: dict[str, Any]) -> None:
    """Write 5 MB to standard output and standard error, some of it no UTF-8, then answer."""
    for _ in range(80):
        os.write(1, b"\xff\xfenoise " * 4096)
        os.write(2, b"\xc3(error\n" * 4096)
    well(spec)
    os.write(2, b"last words \xff\n")


def no_result(_spec: dict[str, Any]) -> None:
    """Claim to be done without a result."""
    emit("done", cpu_s=0.1, host_peak_bytes=1)


def silent(_spec: dict[str, Any]) -> None:
    """End at once with exit code 0."""


def half_line(_spec: dict[str, Any]) -> None:
    """End in the middle of a line."""
    write('{"event":"resu')


def half_line_crash(_spec: dict[str, Any]) -> None:
    """Die in the middle of a line."""
    write('{"event":"resu')
    os.abort()


def nan(spec: dict[str, Any]) -> None:
    """Answer with a number that is none."""
    hello(spec)
    result(0, spec["requests"][0], 0.0, value=float("nan"))


def invalid_utf8(_spec: dict[str, Any]) -> None:
    """Answer with bytes that are no text."""
    write(b'{"event":"phase","request":0,"phase":"\xff","monotonic_s":1}\n')


def long_line(_spec: dict[str, Any]) -> None:
    """Write 2 MiB without a line end."""
    write(b"x" * (2 << 20))


def unknown_reason(spec: dict[str, Any]) -> None:
    """Fail for a reason nobody documented."""
    hello(spec)
    result(0, spec["requests"][0], 0.0, status="error", reason="moon", value=None)


def old_protocol(_spec: dict[str, Any]) -> None:
    """Speak another version."""
    emit("hello", version=99, environment={}, device={"kind": "cpu"})


def wrong_uuid(spec: dict[str, Any]) -> None:
    """Answer from another card than the one asked for."""
    well(spec, uuid="GPU-ffffffff-0000-0000-0000-000000000000")


def on_cpu(spec: dict[str, Any]) -> None:
    """Answer from the CPU, whatever was asked for."""
    well(spec, kind="cpu", uuid="", pci_bus_id="")


def first_only(spec: dict[str, Any]) -> None:
    """Answer the first request and die."""
    hello(spec)
    result(0, spec["requests"][0], 0.0)
    os.abort()


def no_tensorflow(spec: dict[str, Any]) -> None:
    """Find no TensorFlow, as the real child says it: no phase, a failure for each request."""
    hello(spec)
    for request in spec["requests"]:
        answer = {"probe": request["probe"], "dtype": request.get("dtype", "")}
        emit("result", **answer, status="error", reason="tensorflow_missing")
    print("not here", flush=True)
    emit("done", cpu_s=0.1, host_peak_bytes=1)


def show_and_fail(spec: dict[str, Any]) -> None:
    """Print what the child was given, and fail so that it is logged."""
    limits = resource.getrlimit(resource.RLIMIT_CORE)
    with Path("/proc/self/oom_score_adj").open(encoding="ascii") as file:
        manners = {"nice": os.nice(0), "core": limits, "oom_score_adj": int(file.read()), "cwd": str(Path.cwd())}
    print(json.dumps({"env": dict(os.environ), "spec": spec, "isolated": sys.flags.isolated, **manners}))
    sys.exit(1)


def slow_tail(spec: dict[str, Any]) -> None:
    """Answer, then never end."""
    well(spec)
    time.sleep(FOREVER_S)


def out_of_memory(spec: dict[str, Any]) -> None:
    """Find no room on the card."""
    hello(spec)
    for index, request in enumerate(spec["requests"]):
        result(index, request, 0.0, status="error", reason="oom:805306368", value=None, timing=None)
    emit("done", cpu_s=0.1, host_peak_bytes=1)


def eat(_spec: dict[str, Any]) -> None:
    """Take host memory until somebody stops it."""
    eaten = []
    while True:
        eaten.append(b"x" * (8 << 20))


def bench(spec: dict[str, Any]) -> None:
    """Train on a card that holds 300 images of 16 bits: more are slower to reach, then out of memory."""
    hello(spec)
    for index, request in enumerate(spec["requests"]):
        batch, dtype = request.get("batch") or 64, request.get("dtype", "")
        replicas, size = spec.get("replicas", 1), request.get("size") or 224
        capacity = 300 // (2 if dtype in ("tf32", "fp32") else 1)
        shape = f"{batch}x{size}x{size}x3"
        if request["probe"] not in ("resnet50", "vgg16"):
            result(index, request, 0.02)
        elif batch > capacity:
            failed = {"status": "error", "reason": "oom:805306368", "value": None, "unit": "", "timing": None}
            result(index, request, 0.0, shape=shape, **failed)
        else:
            rate = 2000.0 * batch / (batch + 16)
            result(
                index, request, 0.02, shape=shape, mode=request.get("mode", "graph"),
                value=rate * replicas * (0.98 if replicas > 1 else 1.0), allocator_peak_bytes=batch * 10**8,
                figures={"replicas": replicas, "accumulate": request.get("options", {}).get("accumulate", 1)},
                series={"step_s": [batch / rate] * int(request.get("options", {}).get("steps", 0))},
            )  # fmt: skip
    emit("done", cpu_s=0.5, host_peak_bytes=1000)


def third_slow(spec: dict[str, Any]) -> None:
    """Measure a third of the usual on the card whose UUID ends in 3."""
    share = 6.7 / 19.2 if spec["gpu_uuid"].endswith("3") else 1.0
    hello(spec)
    for index, request in enumerate(spec["requests"]):
        result(index, request, 0.6, value=share * FIGURES[request["probe"]][0])
    emit("done", cpu_s=0.5, host_peak_bytes=1000)


BEHAVIOURS = {
    function.__name__: function
    for function in (
        well, hang, hang_deaf, long, slow, abort, kill, exit_137, double_fork, grandchild, noise, no_result, silent,
        half_line, half_line_crash, nan, invalid_utf8, long_line, unknown_reason, old_protocol, wrong_uuid, on_cpu,
        first_only, no_tensorflow, show_and_fail, slow_tail, out_of_memory, eat, third_slow, bench,
    )
}  # fmt: skip


def main() -> None:
    """Play one behaviour."""
    spec = json.load(sys.stdin)
    named = spec["requests"][0].get("options", {}).get("behaviour") or os.environ.get("STUB_BEHAVIOUR", "")
    each_card = named.split(",")
    named = each_card[int(spec["gpu_uuid"][-1:] or "1", 16) % len(each_card) - 1]
    if named:
        BEHAVIOURS[named](spec)
    else:
        well(spec)


main()
