"""The real agent as a process: started with a scenario, asked over HTTP, ended by its id."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from prometheus_client.parser import text_string_to_metric_families

from tests.support.fakenvml import fake_env

_T = TypeVar("_T")
ROOT = Path(__file__).parents[2]
LONG_S = 60.0
"""How long a test waits for what takes a moment on an idle machine."""


class AgentProcess:
    """``heatsoak run`` on a free port of the loopback, its log read as it comes."""

    def __init__(
        self,
        directory: Path,
        *,
        scenario: str | Path | None = None,
        config: str = "",
        environ: Mapping[str, str] | None = None,
        arguments: tuple[str, ...] = (),
        program: tuple[str, ...] = (str(ROOT / "heatsoak.py"),),
        before: tuple[str, ...] = (),
        keep: tuple[int, ...] = (),
    ) -> None:
        """Start it; ``directory`` takes its configuration, the TOML text ``config``, and its state.

        ``program`` is what the interpreter runs, ``before`` a command that starts the one after it, ``keep``
        are descriptors that it inherits.
        """
        self.state_dir = directory / "state"
        self.config_path = directory / "heatsoak.toml"
        self.config_path.write_text(config)
        inherited = fake_env(scenario) if scenario else dict(os.environ)
        base = {key: value for key, value in inherited.items() if not key.startswith("HEATSOAK_")}
        self.log: list[dict[str, Any]] = []
        self._started = threading.Event()
        self.url = ""
        self.process = subprocess.Popen(
            [
                *before,
                sys.executable,
                *program,
                "--config",
                str(self.config_path),
                "--state-dir",
                str(self.state_dir),
                "run",
                *arguments,
            ],
            env={**base, "HEATSOAK_WEB_LISTEN": "127.0.0.1:0", "HEATSOAK_PROBE_ENABLED": "false", **(environ or {})},
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            pass_fds=keep,
        )
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            try:
                entry = json.loads(line)
            except ValueError:
                entry = {"event": "", "text": line.decode("utf-8", "replace").rstrip()}
            self.log.append(entry)
            if entry["event"] == "agent_started":
                self.url = f"http://{entry['addresses'][0]}"
                self._started.set()
        self._started.set()

    @property
    def pid(self) -> int:
        """Return the agent's process id."""
        return self.process.pid

    def await_start(self) -> None:
        """Wait until it says where it listens."""
        assert self._started.wait(LONG_S), f"no start: {self.log}"
        assert self.url, f"ended at the start: {self.log}"

    def get(self, path: str) -> tuple[int, str]:
        """Return status and body of a page."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=LONG_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def status(self) -> dict[str, Any]:
        """Return the status document; empty before the first tick."""
        code, text = self.get("/api/v1/status")
        return dict(json.loads(text)) if code == 200 else {}

    def series(self, metric: str, /) -> list[dict[str, str]]:
        """Return the labels of every series of that name."""
        return [dict(key) for key in self.metrics().get(metric, {})]

    def state(self, kind: str = "node", /, **labels: str) -> str:
        """Return the word of the state that applies, of the node or, with labels, of a card; empty where none does."""
        states = self.metrics().get(f"heatsoak_{kind}_state", {})
        found = [
            dict(key)["state"] for key, value in states.items() if value == 1.0 and labels.items() <= dict(key).items()
        ]
        return found[0] if found else ""

    def metrics(self) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
        """Return a scrape: by sample name, by sorted label pairs, the value; empty before the first tick."""
        found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
        status, page = self.get("/metrics")
        for family in text_string_to_metric_families(page if status == 200 else ""):
            for sample in family.samples:
                found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
        return found

    def value(self, metric: str, /, **labels: str) -> float | None:
        """Return the one sample of that name whose labels hold ``labels``; None where it is absent.

        Raises:
            AssertionError: several samples fit.
        """
        fitting = [
            value for key, value in self.metrics().get(metric, {}).items() if labels.items() <= dict(key).items()
        ]
        assert len(fitting) < 2, f"{metric} {labels}: {len(fitting)} samples"
        return fitting[0] if fitting else None

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the log lines of that event so far."""
        return [entry for entry in list(self.log) if entry["event"] == name]

    def children(self) -> list[int]:
        """Return the process ids of its children."""
        return [int(pid) for pid in Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()]

    def close(self) -> None:
        """Kill it if it still runs, and close its log."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(LONG_S)
        self._reader.join(LONG_S)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def stop(self, number: int = signal.SIGTERM, timeout_s: float = LONG_S) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        code = self.process.wait(timeout_s)
        self._reader.join(timeout_s)
        return code


@contextlib.contextmanager
def running_agent(
    directory: Path,
    *,
    scenario: str | Path | None = None,
    config: str = "",
    environ: Mapping[str, str] | None = None,
    arguments: tuple[str, ...] = (),
    program: tuple[str, ...] = (str(ROOT / "heatsoak.py"),),
    before: tuple[str, ...] = (),
    keep: tuple[int, ...] = (),
) -> Iterator[AgentProcess]:
    """Start an agent, wait until it serves, and end it afterwards whatever happened."""
    agent = AgentProcess(
        directory,
        scenario=scenario,
        config=config,
        environ=environ,
        arguments=arguments,
        program=program,
        before=before,
        keep=keep,
    )
    try:
        agent.await_start()
        yield agent
    finally:
        agent.close()


def eventually(holds: Callable[[], _T], what: str, timeout_s: float = LONG_S) -> _T:
    """Return the first true answer of ``holds``; fail with ``what`` where none comes in time."""
    end_s = time.monotonic() + timeout_s
    while True:
        answer = holds()
        if answer:
            return answer
        assert time.monotonic() < end_s, f"not seen within {timeout_s:.0f} s: {what}"
        time.sleep(0.05)


def alive(pid: int) -> bool:
    """Return whether a process of that id runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
