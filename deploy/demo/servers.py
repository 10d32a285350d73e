"""The demo's processes: agents, a job that starves its card, Prometheus, Alertmanager; ended as they were begun."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import msgspec
import yaml

from agent.clock import SystemClock
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
_START_S: Final = 60.0
_END_S: Final = 10.0
_JOB: Final = """
import contextlib, os, pathlib
os.setsid()
with contextlib.suppress(OSError):  # so that it stays one busy core where the machine has other work; needs root
    os.nice(-10)
    pathlib.Path("/proc/self/autogroup").write_text("-10")
while True:
    pass
"""
_READY: Final[Mapping[str, str]] = {"prometheus": "/-/ready", "alertmanager": "/-/ready", "agent": "/readyz"}


class Ports(msgspec.Struct, frozen=True):
    """Where everything listens; what belongs together always meets on the loopback."""

    prometheus: int = 9090
    alertmanager: int = 9093
    agents: tuple[int, ...] = (9841, 9842, 9843)
    address: str = "127.0.0.1"


class DemoError(RuntimeError):
    """A part of the demo is not installed, or ended."""


def free_ports() -> Ports:
    """Return ports that nobody uses now."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2 + len(NODES))]
    numbers = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return Ports(numbers[0], numbers[1], tuple(numbers[2:]))


@contextlib.contextmanager
def running(directory: Path, ports: Ports, tell: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Run the whole demo in ``directory``, which is emptied first; end every process afterwards.

    Raises:
        DemoError: a program is missing, or does not start.
    """
    programs = {name: _program(*names) for name, names in _PROGRAMS.items()}
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        tell("writing recordings, past probes and two and a half hours of history")
        job = stack.enter_context(_process(directory, "job", [sys.executable, "-c", _JOB]))
        began_wall_s = SystemClock().wall_s()
        _prepare(directory, ports, job.pid, programs["promtool"], began_wall_s)
        tell("starting agents, Alertmanager and Prometheus")
        for node, port in zip(NODES, ports.agents, strict=True):
            stack.enter_context(_agent(directory / node.name, node, f"{ports.address}:{port}"))
        stack.enter_context(_process(directory, "alertmanager", _alertmanager(programs, directory, ports)))
        stack.enter_context(_process(directory, "prometheus", _prometheus(programs, directory, ports)))
        _await("alertmanager", ports.alertmanager)
        _await("prometheus", ports.prometheus)
        for port in ports.agents:
            _await("agent", port)
        _backfill_rules(programs["promtool"], directory, ports, began_wall_s)
        yield


_PROGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "promtool": ("promtool",),
    "prometheus": ("prometheus",),
    "alertmanager": ("prometheus-alertmanager", "alertmanager"),
}


def _program(*names: str) -> str:
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise DemoError(f"{names[0]} is not installed; on Debian: apt-get install prometheus prometheus-alertmanager")


def _prepare(directory: Path, ports: Ports, job_pid: int, promtool: str, now_s: float) -> None:
    clock = SystemClock()
    targets = [f"127.0.0.1:{port}" for port in ports.agents]
    with ThreadPoolExecutor() as pool:
        for node in NODES:
            (directory / node.name).mkdir()
            if node.seats:
                write_recording(directory / node.name / "recording.jsonl", node, job_pid, now_s)
                pool.submit(seed_state, directory / node.name / "state", node, clock)
        write_history(directory / "history.txt", zip(NODES, targets, strict=True), now_s, HISTORY_S, GAP_S)
    _run(promtool, "tsdb", "create-blocks-from", "openmetrics", str(directory / "history.txt"), str(directory / "data"))
    (directory / "history.txt").unlink()
    _write_yaml(directory / "alerts.yaml", shortened(_read_yaml(RULES / "heatsoak-alerts.yaml")))
    _write_yaml(directory / "alertmanager.yaml", _without_receivers(_read_yaml(RULES / "alertmanager.yaml")))
    _write_yaml(directory / "prometheus.yaml", _configuration(directory, ports, targets))


def _backfill_rules(promtool: str, directory: Path, ports: Ports, began_wall_s: float) -> None:
    """Have the recording rules' past written too: Prometheus takes the blocks up within a minute or two."""
    end_s = int(began_wall_s - GAP_S)
    _run(
        promtool, "tsdb", "create-blocks-from", "rules", f"--url=http://127.0.0.1:{ports.prometheus}",
        f"--start={end_s - int(HISTORY_S)}", f"--end={end_s}", "--eval-interval=30s",
        f"--output-dir={directory / 'data'}", str(RULES / "heatsoak-recording.yaml"),
    )  # fmt: skip


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


def _prometheus(programs: Mapping[str, str], directory: Path, ports: Ports) -> list[str]:
    return [
        programs["prometheus"], f"--config.file={directory / 'prometheus.yaml'}", "--log.level=warn",
        f"--storage.tsdb.path={directory / 'data'}", f"--web.listen-address={ports.address}:{ports.prometheus}",
    ]  # fmt: skip


def _alertmanager(programs: Mapping[str, str], directory: Path, ports: Ports) -> list[str]:
    return [
        programs["alertmanager"], f"--config.file={directory / 'alertmanager.yaml'}", "--cluster.listen-address=",
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
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_END_S)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise DemoError(f"{' '.join(command[:4])} ended with {done.returncode}: {done.stderr.strip()[-500:]}")


def _await(kind: str, port: int) -> None:
    """Wait until a server says that it is ready."""
    end_s = time.monotonic() + _START_S
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{_READY[kind]}", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        if time.monotonic() > end_s:
            raise DemoError(f"{kind} on port {port} is not ready after {_START_S:.0f} s; see the logs")
        time.sleep(0.1)


def _read_yaml(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def _write_yaml(path: Path, document: dict[str, Any]) -> None:
    path.write_text(yaml.safe_dump(document, sort_keys=False, width=1000), encoding="utf-8")
