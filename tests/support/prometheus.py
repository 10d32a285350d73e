"""A real Prometheus on the loopback, scraping what a test names."""

import contextlib
import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.support.agent import LONG_S, eventually


class Prometheus:
    """A running server and its query interface."""

    def __init__(self, url: str) -> None:
        """Take its address."""
        self.url = url

    def query(self, expression: str) -> list[tuple[Mapping[str, str], float]]:
        """Return the instant vector of an expression: labels and value of each element."""
        with urllib.request.urlopen(
            f"{self.url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}", timeout=LONG_S
        ) as answer:
            result = json.load(answer)["data"]["result"]
        return [(row["metric"], float(row["value"][1])) for row in result]

    def is_ready(self) -> bool:
        """Return whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=LONG_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@contextlib.contextmanager
def running_prometheus(
    directory: Path, targets: Mapping[str, str], rule_files: tuple[Path, ...] = ()
) -> Iterator[Prometheus]:
    """Run a server that scrapes ``targets`` (job name to ``host:port``) each second; end it afterwards."""
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(path) for path in rule_files],
        "scrape_configs": [
            {"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()
        ],
    }
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "prometheus.yml"
    path.write_text(json.dumps(config))  # JSON is YAML
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with (directory / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={directory / 'data'}",
             f"--web.listen-address={address}", "--log.level=warn"],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            server = Prometheus(f"http://{address}")
            eventually(server.is_ready, "a ready Prometheus")
            yield server
        finally:
            process.terminate()
            process.wait(LONG_S)
