"""One fault, one alarm: a real Alertmanager with the example's rules is handed the alerts of several faults at once."""

import contextlib
import json
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.demo.backfill import end, program
from tests.support.agent import LONG_S, eventually
from tests.support.names import RULES

Labels = dict[str, str]
Key = tuple[str, str, str]
CARD = {"instance": "n1:9838", "node": "n1", "rack": "R1", "gpu": "3", "uuid": "GPU-3"}
NODE = {"instance": "n1:9838", "node": "n1", "rack": "R1"}


def card(**changes: str) -> Labels:
    """Return the labels of a card's alert, ``alertname`` among the changes."""
    return {**CARD, **changes}


class Alertmanager:
    """A running Alertmanager."""

    def __init__(self, url: str) -> None:
        self.url = url

    def is_ready(self) -> bool:
        """Return whether it answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=LONG_S) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def hand_over(self, alerts: list[Labels]) -> None:
        """Tell it of alerts that fire, as Prometheus does."""
        body = json.dumps([{"labels": labels} for labels in alerts]).encode()
        request = urllib.request.Request(
            f"{self.url}/api/v2/alerts", body, {"Content-Type": "application/json"}, method="POST"
        )
        urllib.request.urlopen(request, timeout=LONG_S).close()

    def heard(self, cluster: str) -> set[Key]:
        """Return name, node and card of what somebody of a cluster is told: alerts that nothing keeps quiet."""
        url = f"{self.url}/api/v2/alerts?inhibited=false&filter=cluster%3D%22{cluster}%22"
        with urllib.request.urlopen(url, timeout=LONG_S) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return {_key(alert["labels"]) for alert in found}


def _key(labels: Labels) -> Key:
    return labels["alertname"], labels.get("node", ""), labels.get("gpu", "")


@pytest.fixture(scope="module")
def alertmanager(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alertmanager]:
    """Run one with the configuration that is shipped; its receivers are never reached."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    directory = tmp_path_factory.mktemp("alertmanager")
    command = [
        program("prometheus-alertmanager", "alertmanager"), "--cluster.listen-address=", "--log.level=error",
        f"--config.file={RULES / 'alertmanager.yaml'}", f"--storage.path={directory}",
        f"--web.listen-address={address}",
    ]  # fmt: skip
    with contextlib.ExitStack() as stack:
        log = stack.enter_context((Path(directory) / "log").open("wb"))
        process = subprocess.Popen(command, stdout=log, stderr=log)
        stack.callback(end, process)
        server = Alertmanager(f"http://{address}")
        eventually(server.is_ready, "a ready Alertmanager")
        yield server


@pytest.mark.parametrize(
    ("source", "quiet", "loud"),
    [
        (
            {"alertname": "RackThermalThrottling", "rack": "R1"},
            [card(alertname="CardThermalThrottling"), card(alertname="CardSlowerThanFleet")],
            [card(alertname="CardThermalThrottling", rack="R2", node="n9"), card(alertname="CardFaulty")],
        ),
        (
            card(alertname="CardInMaintenance"),
            [card(alertname=name) for name in ("CardLost", "CardDegraded", "ProbeStarved", "WorkloadInputBound")],
            [card(alertname="CardLost", uuid="GPU-4", gpu="4"), {**NODE, "alertname": "NvmlDown"}],
        ),
        (
            {**NODE, "alertname": "NvmlDown"},
            [card(alertname="CardLost"), card(alertname="CardNotJudged")]
            + [{**NODE, "alertname": name} for name in ("GpuMissing", "FabricDown", "ProbeEnvironmentBroken")],
            [card(alertname="CardLost", instance="n2:9838", node="n2"), {**NODE, "alertname": "AgentDown"}],
        ),
        (
            card(alertname="CardLost"),
            [card(alertname=name) for name in ("CardFaulty", "CardThermalThrottling", "ProbeStarved")],
            [card(alertname="CardFaulty", uuid="GPU-4", gpu="4"), {**NODE, "alertname": "GpuMissing"}],
        ),
        (
            card(alertname="CardFaulty"),
            [card(alertname=name) for name in ("CardDegraded", "CardSlowerThanFleet", "CardNotJudged")],
            [card(alertname="CardThermalThrottling")],
        ),
        (
            {**NODE, "alertname": "HostSlow"},
            [card(alertname="CardNotJudged"), card(alertname="CardSlowerThanFleet")],
            [card(alertname="CardDegraded")],
        ),
    ],
    ids=lambda value: value["alertname"] if isinstance(value, dict) else "",
)
def test_one_fault_keeps_what_follows_from_it_quiet(
    alertmanager: Alertmanager, source: Labels, quiet: list[Labels], loud: list[Labels]
) -> None:
    """Beside its cause what follows is not heard; other faults, racks, nodes and cards are."""
    beside = [*quiet, *loud]
    clusters = [f"{source['alertname']}-{at}" for at in range(len(beside))]
    for cluster, other in zip(clusters, beside, strict=True):
        alertmanager.hand_over([{**source, "cluster": cluster}, {**other, "cluster": cluster}])
    expected = [{_key(source)}] * len(quiet) + [{_key(source), _key(other)} for other in loud]
    eventually(lambda: [alertmanager.heard(cluster) for cluster in clusters] == expected, f"{expected}", 15.0)
