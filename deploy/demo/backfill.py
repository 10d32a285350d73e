"""A past for Prometheus: what would have been scraped, and what the recording rules would have made of it."""

import contextlib
import re
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

_START_S: Final = 60.0
_END_S: Final = 10.0
_STEP: Final = "30s"

Rule = dict[str, Any]


class DemoError(RuntimeError):
    """A part of the demo is not installed, or does not do what it should."""


def program(*names: str) -> str:
    """Return the path of a program known by one of these names.

    Raises:
        DemoError: it is not installed.
    """
    for name in names:
        found = shutil.which(name)
        if found:
            return found
    raise DemoError(f"{names[0]} is not installed; on Debian: apt-get install prometheus prometheus-alertmanager")


def free_port() -> int:
    """Return a port of the loopback that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def load_history(openmetrics: Path, data: Path) -> None:
    """Write blocks of what the file says into a Prometheus's data directory."""
    _run(program("promtool"), "tsdb", "create-blocks-from", "openmetrics", str(openmetrics), str(data))


def evaluate_rules(rules: Path, data: Path, start_wall_s: float, end_wall_s: float) -> None:
    """Write what the recording rules say of that time; no server may use the data directory meanwhile."""
    document = yaml.safe_load(rules.read_text(encoding="utf-8"))
    for number, level in enumerate(levels([rule for group in document["groups"] for rule in group["rules"]])):
        path = data.parent / f"level-{number}.yaml"
        path.write_text(yaml.safe_dump({"groups": [{"name": f"level-{number}", "rules": list(level)}]}))
        with _serving(data) as url:
            _run(
                program("promtool"), "tsdb", "create-blocks-from", "rules", f"--url={url}", f"--eval-interval={_STEP}",
                f"--start={start_wall_s:.0f}", f"--end={end_wall_s:.0f}", f"--output-dir={data}", str(path),
            )  # fmt: skip


def levels(rules: Sequence[Rule]) -> Iterator[tuple[Rule, ...]]:
    """Yield the rules in such groups that each reads only what groups before it record."""
    left = list(rules)
    while left:
        open_names = {rule["record"] for rule in left}
        ready = tuple(rule for rule in left if not open_names & set(re.findall(r"\w+:\w+:\w+", rule["expr"])))
        if not ready:
            raise DemoError(f"rules read one another in a circle: {', '.join(sorted(open_names))}")
        yield ready
        left = [rule for rule in left if rule not in ready]


def await_ready(url: str, what: str) -> None:
    """Wait until a server answers 200.

    Raises:
        DemoError: it does not within a minute.
    """
    end_s = time.monotonic() + _START_S
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - an address of ours
                if answer.status == 200:
                    return
        except OSError:
            pass
        if time.monotonic() > end_s:
            raise DemoError(f"{what} at {url} is not ready after {_START_S:.0f} s; see its log")
        time.sleep(0.1)


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, the hard way where it does not listen."""
    process.terminate()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(_END_S)


@contextlib.contextmanager
def _serving(data: Path) -> Iterator[str]:
    """Run a Prometheus that only answers; yield its address."""
    address = f"127.0.0.1:{free_port()}"
    config = data.parent / "empty.yaml"
    config.write_text("{}\n")
    command = [
        program("prometheus"), f"--config.file={config}", f"--storage.tsdb.path={data}", "--log.level=error",
        f"--web.listen-address={address}",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await_ready(f"http://{address}/-/ready", "prometheus")
        yield f"http://{address}"
    finally:
        end(process)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise DemoError(f"{' '.join(command[:4])} ended with {done.returncode}: {done.stderr.strip()[-500:]}")
