"""The probes on a real card: figures, noise, cost, guards. Makes the raw data of docs/benchmarks.md.

    python3 benchmarks/h200_probes.py --python PYTHON_WITH_TENSORFLOW --out RESULT.json SECTION…

Sections:
  matmul     matrix products, the probe's and PyTorch's in turn, three rounds
  resnet     ResNet-50 steps, the probe's (graph, XLA) and PyTorch's (eager, torch.compile)
  fresh      --children fresh children of the judged pair with --pause seconds between them: noise and cost
  every      every other probe, data type and network once
  xla        what compiles long: CIFAR shape and VGG16 in XLA mode
  guards     ten corrupted products, a corrupted memory fill, a memory limit, a missing library, a wrong card
  pipeline   the input pipeline

PyTorch runs under the interpreter of this script (--torch-python), without the Python and library paths of TensorFlow.
The result is written anew after each step, so that an interrupted run keeps what it had. Card identifiers are masked.
"""

from __future__ import annotations

import argparse
import importlib
import itertools
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MAIN = "import runpy\n\nrunpy.run_module('workloads', run_name='__main__', alter_sys=True)\n"
JUDGED = ({"probe": "matmul", "dtype": "bf16"}, {"probe": "resnet50", "dtype": "bf16"})
IDENTIFIER = re.compile(r"GPU-[0-9a-fA-F-]{36}|[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
SAMPLE_S = 0.05
Json = dict[str, object]


class Card:
    """The card under test, sampled while children run."""

    def __init__(self, index: int) -> None:
        """Open the card; without NVML nothing is sampled."""
        self.uuid = ""
        self._nvml: Any = None
        try:
            pynvml = importlib.import_module("pynvml")
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            self.uuid = str(pynvml.nvmlDeviceGetUUID(self._handle))
            self._nvml = pynvml
        except Exception as error:  # noqa: BLE001 - a machine without NVML is measured all the same
            print("nothing is sampled:", error, flush=True)

    def watch(self, stop: threading.Event, samples: list[tuple[float, int, int, float, int, int]]) -> None:
        """Collect (time, utilisation, SM MHz, watts, degrees, throttle bits) until told to stop."""
        nvml = self._nvml
        while nvml is not None and not stop.wait(SAMPLE_S):
            samples.append(
                (
                    time.monotonic(),
                    nvml.nvmlDeviceGetUtilizationRates(self._handle).gpu,
                    nvml.nvmlDeviceGetClockInfo(self._handle, nvml.NVML_CLOCK_SM),
                    nvml.nvmlDeviceGetPowerUsage(self._handle) / 1000,
                    nvml.nvmlDeviceGetTemperature(self._handle, nvml.NVML_TEMPERATURE_GPU),
                    nvml.nvmlDeviceGetCurrentClocksThrottleReasons(self._handle),
                )
            )

    def facts(self) -> Json:
        """Return what the card is."""
        if self._nvml is None:
            return {}
        nvml = self._nvml
        return {
            "name": str(nvml.nvmlDeviceGetName(self._handle)),
            "driver": str(nvml.nvmlSystemGetDriverVersion()),
            "power_limit_watts": nvml.nvmlDeviceGetEnforcedPowerLimit(self._handle) / 1000,
        }


class Bench:
    """Runs children and keeps what they said."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        """Pack the workloads and open the card."""
        self.arguments = arguments
        self.folder = tempfile.TemporaryDirectory(prefix="heatsoak-bench-")
        self.package = Path(self.folder.name) / "workloads.pyz"
        with zipfile.ZipFile(self.package, "w") as archive:
            archive.writestr("__main__.py", MAIN)
            for path in sorted((ROOT / "workloads").glob("*.py")):
                archive.write(path, f"workloads/{path.name}")
        self.card = Card(arguments.gpu)
        self.result: Json = {"started_wall_s": time.time(), "host": host_facts(), "card": self.card.facts()}

    def keep(self, section: str, entry: Json) -> None:
        """Add an entry to a section and write everything."""
        entries = self.result.setdefault(section, [])
        assert isinstance(entries, list)
        entries.append(entry)
        text = IDENTIFIER.sub("masked", json.dumps(self.result, indent=1))
        partial = Path(f"{self.arguments.out}.partial")
        partial.write_text(text + "\n", encoding="utf-8")
        partial.replace(self.arguments.out)

    def child(self, section: str, requests: Iterable[Json], label: str = "", **changes: object) -> Json:
        """Run one child and keep its answers with the time each took from the start.

        ``environment`` in ``changes`` replaces the environment; the rest goes into the specification.
        """
        environment = changes.pop("environment", None) or dict(os.environ)
        assert isinstance(environment, dict)
        environment.update({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"})
        if self.card.uuid and "gpu_uuid" not in changes:
            environment["CUDA_VISIBLE_DEVICES"] = changes["gpu_uuid"] = self.card.uuid
        spec = {
            "version": 1, "device": self.arguments.device, "requests": list(requests),
            "threads": self.arguments.threads, "cache_dir": self.arguments.cache_dir, **changes,
        }  # fmt: skip
        samples: list[tuple[float, int, int, float, int, int]] = []
        stop = threading.Event()
        watcher = threading.Thread(target=self.card.watch, args=(stop, samples))
        watcher.start()
        try:
            entry = self._run(spec, environment)
        finally:
            stop.set()
            watcher.join()
        entry.update({"label": label, **summary_of(samples)})
        self.keep(section, entry)
        say(section, entry)
        return entry

    def _run(self, spec: Json, environment: dict[str, str]) -> Json:
        read, write = os.pipe()
        isolated = [] if self.arguments.not_isolated else ["-I"]
        command = [self.arguments.python, *isolated, str(self.package), str(write)]
        start_s = time.monotonic()
        with Path(self.folder.name, "stderr").open("wb") as errors:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=errors, stderr=errors, pass_fds=[write], env=environment
            )
            os.close(write)
            assert process.stdin is not None
            process.stdin.write(json.dumps(spec).encode())
            process.stdin.close()
            with os.fdopen(read, encoding="utf-8") as lines:
                events = [{"at_s": round(time.monotonic() - start_s, 3), **json.loads(line)} for line in lines]
            code = process.wait()
        entry: Json = {"requests": spec["requests"], "exit_code": code, "elapsed_s": time.monotonic() - start_s}
        entry["events"] = [event for event in events if event["event"] != "phase"]
        entry["phases"] = [(event["at_s"], event["request"], event["phase"]) for event in events if "phase" in event]
        if code or not any(event["event"] == "done" for event in events):
            entry["stderr"] = Path(self.folder.name, "stderr").read_text(errors="replace")[-2000:]
        return entry

    def torch(self, section: str, *cases: str) -> None:
        """Run PyTorch on the cases and keep what it reached."""
        environment = dict(os.environ)
        foreign = [path for path in environment.pop("PYTHONPATH", "").split(":") if path]
        libraries = environment.get("LD_LIBRARY_PATH", "").split(":")
        environment["LD_LIBRARY_PATH"] = ":".join(
            path for path in libraries if path and not any(path.startswith(folder) for folder in foreign)
        )
        if self.card.uuid:
            environment["CUDA_VISIBLE_DEVICES"] = self.card.uuid
        script = str(Path(__file__).with_name("torch_reference.py"))
        done = subprocess.run(
            [self.arguments.torch_python, script, *cases], capture_output=True, text=True, env=environment, check=False
        )
        for line in done.stdout.splitlines():
            if line.startswith("{"):
                self.keep(section, json.loads(line))
                print(section, line, flush=True)
        if done.returncode:
            self.keep(section, {"case": " ".join(cases), "exit_code": done.returncode, "stderr": done.stderr[-2000:]})
            print(section, "torch failed:", done.stderr[-500:], flush=True)


def matmul(bench: Bench) -> None:
    """Both frameworks in turn, so that heat and clocks are shared."""
    for _ in range(bench.arguments.rounds):
        bench.torch("matmul", "matmul:bf16:8192", "matmul:bf16:16384")
        requests = [{"probe": "matmul", "dtype": "bf16", "size": side} for side in (8192, 16384)]
        bench.child("matmul", requests)
    bench.torch("matmul", "matmul:tf32:8192", "matmul:fp32:8192", "matmul:fp16:8192")


def resnet(bench: Bench) -> None:
    """Large and small batches, graph and XLA; PyTorch eager and compiled."""
    step = {"probe": "resnet50", "seconds": 2.0}
    for _ in range(max(1, bench.arguments.rounds - 1)):
        bench.torch("resnet", "resnet50:autocast:256:eager", "resnet50:bf16:256:eager")
        bench.child(
            "resnet", [{**step, "dtype": "bf16", "batch": 256}, {**step, "dtype": "bf16", "batch": 256, "mode": "xla"}]
        )
        bench.torch("resnet", "resnet50:autocast:256:compile", "resnet50:bf16:256:compile")
    bench.torch("resnet", "resnet50:tf32:32:eager", "resnet50:autocast:32:eager")
    small = [{**step, "dtype": dtype, "batch": batch} for dtype in ("tf32", "bf16") for batch in (32, 64)]
    bench.child("resnet", small)


def fresh(bench: Bench) -> None:
    """Fresh children of the judged pair, idle between them: what the judge will see."""
    values: dict[str, list[float]] = {}
    for index in range(bench.arguments.children):
        if index:
            time.sleep(bench.arguments.pause)
        entry = bench.child("fresh", JUDGED, label=str(index))
        for event in results_of(entry):
            if event["status"] == "ok":
                values.setdefault(str(event["probe"]), []).append(float(str(event["value"])))
    for probe, series in values.items():
        if len(series) > 1:
            spread = statistics.stdev(series) / statistics.fmean(series)
            bench.keep("fresh_summary", {"probe": probe, "values": series, "coefficient_of_variation": spread})
            print(f"fresh {probe}: n={len(series)} CV {spread:.3%}", flush=True)


def every(bench: Bench) -> None:
    """Each remaining probe once."""
    short = {"seconds": 1.0}
    bench.child(
        "every", [{"probe": "matmul", "dtype": dtype, **short} for dtype in ("bf16", "fp16", "tf32", "fp32", "fp64")]
    )
    bench.child(
        "every",
        [
            {"probe": "resnet50", "dtype": "bf16", "size": 32, **short},
            {"probe": "resnet50", "dtype": "tf32", "size": 32, **short},
            {"probe": "resnet50", "dtype": "fp16", **short},
            {"probe": "resnet50", "dtype": "tf32", **short},
            {"probe": "vgg16", "dtype": "bf16", **short},
            {"probe": "vgg16", "dtype": "fp16", **short},
            {"probe": "vgg16", "dtype": "tf32", **short},
        ],
    )
    bench.child(
        "every", [{"probe": "bandwidth"}, {"probe": "memory", "dtype": "bf16", "options": {"optimizer": "adam"}}]
    )
    bench.child("every", [{"probe": "fill"}])


def xla(bench: Bench) -> None:
    """Run what takes long to compile."""
    bench.child("xla", [{"probe": "resnet50", "dtype": "bf16", "size": 32, "mode": "xla"}])
    bench.child("xla", [{"probe": "vgg16", "dtype": "bf16", "mode": "xla"}])


def guards(bench: Bench) -> None:
    """Run what must end without a number, and with the right reason."""
    corrupt = [
        {"probe": "matmul", "dtype": dtype, "seconds": 0.2, "options": {"corrupt": place}}
        for place, dtype in enumerate(("bf16", "fp16", "tf32", "fp32", "fp64") * 2, start=1)
    ]
    bench.child("guards", corrupt, "ten corrupted products")
    bench.child("guards", [{"probe": "fill", "options": {"corrupt": True}}], "a corrupted word")
    bench.child("guards", [{"probe": "memory", "dtype": "bf16", "batch": 256}], "8 GiB", memory_limit_bytes=8 * 2**30)
    bench.child("guards", JUDGED, "16 GiB", memory_limit_bytes=16 * 2**30)
    bench.child("guards", JUDGED, "another card", gpu_uuid="GPU-00000000-0000-0000-0000-000000000000")
    without = dict(os.environ)
    libraries = without.get("LD_LIBRARY_PATH", "").split(":")
    without["LD_LIBRARY_PATH"] = ":".join(path for path in libraries if "cusolver" not in path)
    bench.child("guards", JUDGED, "without libcusolver", environment=without)


def pipeline(bench: Bench) -> None:
    """Host, card and both."""
    bench.child("pipeline", [{"probe": "pipeline", "dtype": "bf16"}])


SECTIONS: dict[str, Callable[[Bench], None]] = {
    "matmul": matmul,
    "resnet": resnet,
    "fresh": fresh,
    "every": every,
    "xla": xla,
    "guards": guards,
    "pipeline": pipeline,
}


def results_of(entry: Json) -> list[Json]:
    """Return the results among a child's events."""
    events = entry["events"]
    assert isinstance(events, list)
    return [event for event in events if event["event"] == "result"]


def summary_of(samples: list[tuple[float, int, int, float, int, int]]) -> Json:
    """Return what the card did meanwhile; empty where nothing was sampled."""
    if len(samples) < 2:
        return {}
    steps = [after[0] - before[0] for before, after in itertools.pairwise(samples)]
    loaded = [sample for sample in samples if sample[1] >= 90]
    bits = 0
    for sample in loaded:
        bits |= sample[5]
    return {
        "card_busy_s": sum(step * sample[1] / 100 for step, sample in zip(steps, samples[1:], strict=False)),
        "sm_mhz_median_loaded": statistics.median(sample[2] for sample in loaded) if loaded else None,
        "power_max_watts": max(sample[3] for sample in samples),
        "temperature_max_celsius": max(sample[4] for sample in samples),
        "throttle_bits_loaded": bits,
    }


def say(section: str, entry: Json) -> None:
    """Print one line per result."""
    for event in results_of(entry):
        words = [event[key] for key in ("probe", "variant", "dtype", "shape", "mode", "status", "reason") if event[key]]
        timing = event["timing"] if isinstance(event["timing"], dict) else {}
        print(
            f"{section} {entry['label']} at {event['at_s']} s:", *words, event["value"], event["detail"],
            {key: timing[key] for key in ("host_share", "inner", "repeats", "first_call_s") if key in timing},
            event["figures"], flush=True,
        )  # fmt: skip
    print(
        f"{section}: exit {entry['exit_code']}, {entry['elapsed_s']:.1f} s, busy {entry.get('card_busy_s')}", flush=True
    )
    if "stderr" in entry:
        print(entry["stderr"], flush=True)


def host_facts() -> Json:
    """Return what the host is."""
    return {"cpus": os.cpu_count(), "python": sys.version.split()[0]}


def main() -> None:
    """Run the sections named; one that fails does not keep the others from running."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="Sections: " + ", ".join(SECTIONS))
    parser.add_argument("sections", nargs="+", choices=SECTIONS)
    parser.add_argument("--python", required=True, help="interpreter with TensorFlow")
    parser.add_argument("--torch-python", default=sys.executable, help="interpreter with PyTorch")
    parser.add_argument("--out", required=True, help="JSON file to write")
    parser.add_argument(
        "--not-isolated", action="store_true", help="start children without -I, so that PYTHONPATH counts"
    )
    parser.add_argument("--gpu", type=int, default=0, help="index of the card")
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--cache-dir", default="", help="compilation cache of the children")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--children", type=int, default=20)
    parser.add_argument("--pause", type=float, default=20.0)
    bench = Bench(parser.parse_args())
    for name in bench.arguments.sections:
        start_s = time.monotonic()
        try:
            SECTIONS[name](bench)
        except Exception:  # noqa: BLE001 - the other sections' data must not be lost
            bench.keep("failures", {"section": name, "traceback": traceback.format_exc()})
            traceback.print_exc()
        print(f"== {name}: {time.monotonic() - start_s:.0f} s", flush=True)


if __name__ == "__main__":
    main()
