"""The demo's processes: agents, a job that starves its card, Prometheus, Alertmanager; ended as they were begun."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from agent.clock import SystemClock
from deploy.demo.backfill import await_ready, end, evaluate_rules, free_port, load_history, program
from deploy.demo.history import write_history
from deploy.demo.recordings import seed_state, write_recording
from deploy.demo.story import NODES, Node

ROOT: Final = Path(__file__).parents[2]
RULES: Final = ROOT / "deploy" / "prometheus"
HISTORY_S: Final = 2.5 * 3600.0
GAP_S: Final = 300.0
"""History ends so long before the agents start: its last samples are out of sight by then, whatever they said."""
DEMO_WAIT: Final = "15s"
"""What every `for` of the alerts is cut down to: nobody looks at a demo for ten minutes before the first alert."""
_JOB: Final = """
import contextlib, os, pathlib
os.setsid()
with contextlib.suppress(OSError):  # so that it stays one busy core where the machine has other work; needs root
    os.nice(-10)
    pathlib.Path("/proc/self/autogroup").write_text("-10")
while True:
    pass
"""


class Ports(msgspec.Struct, frozen=True):
    """Where everything listens; what belongs together always meets on the loopback."""

    prometheus: int = 9090
    alertmanager: int = 9093
    agents: tuple[int, ...] = (9841, 9842, 9843)
    address: str = "127.0.0.1"


def free_ports() -> Ports:
    """Return ports that nobody uses now."""
    return Ports(free_port(), free_port(), tuple(free_port() for _ in NODES))


@contextlib.contextmanager
def running(directory: Path, ports: Ports, tell: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Run the whole demo in ``directory``, which is emptied first; end every process afterwards.

    Raises:
        DemoError: a program is missing, or does not start.
    """
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        tell("writing recordings, past probes and two and a half hours of history")
        job = stack.enter_context(_process(directory, "job", [sys.executable, "-c", _JOB]))
        _prepare(directory, ports, job.pid, SystemClock().wall_s())
        tell("starting agents, Alertmanager and Prometheus")
        for node, port in zip(NODES, ports.agents, strict=True):
            stack.enter_context(_agent(directory / node.name, node, f"{ports.address}:{port}"))
        stack.enter_context(_process(directory, "alertmanager", _alertmanager(directory, ports)))
        stack.enter_context(_process(directory, "prometheus", _prometheus(directory, ports)))
        await_ready(f"http://127.0.0.1:{ports.alertmanager}/-/ready", "alertmanager")
        await_ready(f"http://127.0.0.1:{ports.prometheus}/-/ready", "prometheus")
        for port in ports.agents:
            await_ready(f"http://127.0.0.1:{port}/readyz", "an agent")
        yield


def _prepare(directory: Path, ports: Ports, job_pid: int, now_s: float) -> None:
    clock = SystemClock()
    targets = [f"127.0.0.1:{port}" for port in ports.agents]
    with ThreadPoolExecutor() as pool:
        for node in NODES:
            (directory / node.name).mkdir()
            if node.seats:
                write_recording(directory / node.name / "recording.jsonl", node, job_pid, now_s)
                pool.submit(seed_state, directory / node.name / "state", node, clock)
        write_history(directory / "history.txt", zip(NODES, targets, strict=True), now_s, HISTORY_S, GAP_S)
    load_history(directory / "history.txt", directory / "data")
    (directory / "history.txt").unlink()
    recording = RULES / "heatsoak-recording.yaml"
    evaluate_rules(recording, directory / "data", now_s - GAP_S - HISTORY_S, now_s - GAP_S)
    _write_yaml(directory / "alerts.yaml", shortened(_read_yaml(RULES / "heatsoak-alerts.yaml")))
    _write_yaml(directory / "alertmanager.yaml", _without_receivers(_read_yaml(RULES / "alertmanager.yaml")))
    _write_yaml(directory / "prometheus.yaml", _configuration(directory, ports, targets))


def shortened(rules: dict[str, Any]) -> dict[str, Any]:
    """Return alert rules that wait ``DEMO_WAIT`` where they would wait longer."""
    groups = [
        {**group, "rules": [rule | ({"for": DEMO_WAIT} if "for" in rule else {}) for rule in group["rules"]]}
        for group in rules["groups"]
    ]
    return {**rules, "groups": groups}


def _without_receivers(config: dict[str, Any]) -> dict[str, Any]:
    """Return the example's routing, with receivers that send nothing."""
    return {**config, "receivers": [{"name": receiver["name"]} for receiver in config["receivers"]]}


def _configuration(directory: Path, ports: Ports, targets: list[str]) -> dict[str, Any]:
    alertmanager = {"static_configs": [{"targets": [f"127.0.0.1:{ports.alertmanager}"]}]}
    return {
        "global": {"scrape_interval": "5s", "evaluation_interval": "5s"},
        "rule_files": [str(RULES / "heatsoak-recording.yaml"), str(directory / "alerts.yaml")],
        "alerting": {"alertmanagers": [alertmanager]},
        "scrape_configs": [{"job_name": "heatsoak", "static_configs": [{"targets": targets}]}],
    }


def _prometheus(directory: Path, ports: Ports) -> list[str]:
    return [
        program("prometheus"), f"--config.file={directory / 'prometheus.yaml'}", "--log.level=warn",
        f"--storage.tsdb.path={directory / 'data'}", f"--web.listen-address={ports.address}:{ports.prometheus}",
    ]  # fmt: skip


def _alertmanager(directory: Path, ports: Ports) -> list[str]:
    return [
        program("prometheus-alertmanager", "alertmanager"), "--cluster.listen-address=",
        f"--config.file={directory / 'alertmanager.yaml'}",
        f"--storage.path={directory / 'alertmanager'}", f"--web.listen-address={ports.address}:{ports.alertmanager}",
    ]  # fmt: skip


@contextlib.contextmanager
def _agent(directory: Path, node: Node, listen: str) -> Iterator[None]:
    environ = {
        "HEATSOAK_WEB_LISTEN": listen,
        "HEATSOAK_NODE_NAME": node.name,
        "HEATSOAK_NODE_RACK": node.rack,
        "HEATSOAK_NODE_POSITION": node.position,
        "HEATSOAK_NODE_EXPECTED_GPUS": str(len(node.seats)),
        "HEATSOAK_PROBE_ENABLED": "false",
        "HEATSOAK_PROBE_TRUST_PIDS": "yes",
        "HEATSOAK_NVML_ENABLED": str(bool(node.seats)).lower(),
    }
    replay = ["--replay", str(directory / "recording.jsonl")] if node.seats else []
    command = [sys.executable, str(ROOT / "heatsoak.py"), "--state-dir", str(directory / "state"), "run", *replay]
    with _process(directory, "agent", command, environ):
        yield


@contextlib.contextmanager
def _process(
    directory: Path, name: str, command: list[str], environ: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    with (directory / f"{name}.log").open("wb") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **(environ or {})}
        )
        try:
            yield process
        finally:
            end(process)


def _read_yaml(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _write_yaml(path: Path, document: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=1000), encoding="utf-8")
