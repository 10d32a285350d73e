"""Reads a child specification and plays the behaviour that the first request's options name."""

import json
import os
import signal
import subprocess
import sys
import time
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


def well(spec: dict[str, Any], window_s: float = 0.1, **device: object) -> None:
    """Answer every request."""
    hello(spec, **device)
    for index, request in enumerate(spec["requests"]):
        result(index, request, window_s)
    emit("done", cpu_s=0.5, host_peak_bytes=1000)


def hang_deaf(spec: dict[str, Any]) -> None:
    """Ignore SIGTERM and never end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hello(spec)
    print("deaf", flush=True)
    time.sleep(FOREVER_S)


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


def grandchild(spec: dict[str, Any]) -> None:
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


def slow_tail(spec: dict[str, Any]) -> None:
    """Answer, then never end."""
    well(spec)
    time.sleep(FOREVER_S)


def main() -> None:
    """Play one behaviour."""
    spec = json.load(sys.stdin)
    request = spec["requests"][0]
    behaviour = request.get("options", {}).get("behaviour", "ok")
    plain = {
        "hang": lambda: time.sleep(FOREVER_S),
        "long": lambda: well(spec, window_s=FOREVER_S),
        "slow": lambda: well(spec, window_s=1.5),
        "abort": os.abort,
        "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
        "exit_137": lambda: sys.exit(137),
        "no_result": lambda: emit("done", cpu_s=0.1, host_peak_bytes=1),
        "silent": lambda: None,
        "half_line": lambda: write('{"event":"resu'),
        "half_line_crash": lambda: (write('{"event":"resu'), os.abort()),
        "nan": lambda: (hello(spec), result(0, request, 0.0, value=float("nan"))),
        "invalid_utf8": lambda: write(b'{"event":"phase","request":0,"phase":"\xff","monotonic_s":1}\n'),
        "long_line": lambda: write(b"x" * (2 << 20)),
        "unknown_reason": lambda: (hello(spec), result(0, request, 0.0, status="error", reason="moon", value=None)),
        "old_protocol": lambda: emit("hello", version=99, environment={}, device={"kind": "cpu"}),
        "wrong_uuid": lambda: well(spec, uuid="GPU-ffffffff-0000-0000-0000-000000000000"),
        "no_identity": lambda: well(spec, uuid="", pci_bus_id=""),
        "on_cpu": lambda: well(spec, kind="cpu"),
        "first_only": lambda: (hello(spec), result(0, request, 0.0), os.abort()),
        "no_tensorflow": lambda: (
            hello(spec),
            [
                emit("result", probe=r["probe"], status="error", reason="tensorflow_missing", dtype=r.get("dtype", ""))
                for r in spec["requests"]
            ],
            emit("done", cpu_s=0.1, host_peak_bytes=1),
        ),
        "show": lambda: (print(json.dumps({"env": dict(os.environ), "spec": spec, "nice": os.nice(0)})), well(spec)),
        "ok": lambda: well(spec),
    }
    told = {"hang_deaf": hang_deaf, "double_fork": double_fork, "grandchild": grandchild, "noise": noise}
    if behaviour in plain:
        plain[behaviour]()
    else:
        {**told, "slow_tail": slow_tail}[behaviour](spec)


main()
