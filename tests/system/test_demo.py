"""The demo: each fault shows in the fleet's data and raises its alert, and nothing else does."""

import json
import urllib.request
from collections.abc import Iterator

import pytest

from deploy.demo.servers import Ports, free_ports, running
from deploy.demo.story import NODES
from tests.support.agent import eventually
from tests.support.prometheus import Prometheus

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("demo"), pytest.mark.timeout(400)]
EXPECTED = {
    ("CardThermalThrottling", "gpu-r07-n12", "2"),
    ("CardDegraded", "gpu-r07-n12", "5"),
    ("WorkloadInputBound", "gpu-r07-n14", "0"),
}
ALERTS_S = 120.0


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ports]:
    """Run the demo on free ports."""
    ports = free_ports()
    with running(tmp_path_factory.mktemp("demo") / "all", ports):
        yield ports


def active_alerts(ports: Ports) -> set[tuple[str, str, str]]:
    """Return name, node and card of what Alertmanager would tell somebody."""
    url = f"http://127.0.0.1:{ports.alertmanager}/api/v2/alerts?active=true&inhibited=false&silenced=false"
    with urllib.request.urlopen(url, timeout=10) as answer:
        labels = [alert["labels"] for alert in json.load(answer)]
    return {(one["alertname"], one.get("node", ""), one.get("gpu", "")) for one in labels}


@pytest.fixture
def settled(demo: Ports) -> Ports:
    """Return the demo once its story has unfolded: the tests run in any order."""
    eventually(lambda: active_alerts(demo) >= EXPECTED, f"{sorted(EXPECTED)}", ALERTS_S)
    return demo


def test_exactly_the_expected_alerts_are_raised_within_two_minutes(settled: Ports) -> None:
    """Heat, slowness and starvation, each with its own alert; no fault of the demo makes a second one."""
    assert active_alerts(settled) == EXPECTED


def test_each_fault_shows_in_the_fleet_dashboards_data(settled: Ports) -> None:
    """The worst come first, with their reasons, and the states add up to all cards."""
    server = Prometheus(f"http://127.0.0.1:{settled.prometheus}")
    worst = server.query("sort_desc(topk(10, card:heatsoak_problem:rank))")
    assert [(row["state"], row["node"], row["gpu"]) for row, _ in worst] == [
        ("degraded", "gpu-r07-n12", "5"),
        ("throttled", "gpu-r07-n12", "2"),
        ("input_bound", "gpu-r07-n14", "0"),
    ]
    counts = {row["state"]: value for row, value in server.query("sum by (state) (heatsoak_card_state)")}
    cards = sum(len(node.seats) for node in NODES)
    assert counts == dict.fromkeys(counts, 0.0) | {"ok": cards - 2.0, "degraded": 1.0, "throttled": 1.0}
    (slowest, score), *_ = server.query("bottomk(1, card:heatsoak_probe_score:ratio)")
    assert slowest["gpu"] == "5"
    assert 0.91 < score < 0.93
    heat = {row["slot"]: value for row, value in server.query("slot:heatsoak_temperature_celsius:max")}
    assert heat.keys() == {"U12", "U14"}
    assert heat["U12"] > 85
    assert heat["U14"] < 60


def test_the_hours_before_are_there(settled: Ports) -> None:
    """Panels begin with history, raw and recorded."""
    server = Prometheus(f"http://127.0.0.1:{settled.prometheus}")
    assert server.query("count(heatsoak_gpu_temperature_celsius offset 1h)")[0][1] == 10
    recorded = "count(card:heatsoak_card_state:current offset 1h)"
    assert eventually(lambda: server.query(recorded), "recorded history", 180.0)[0][1] == 10


def test_the_directory_of_each_agent_is_its_own(demo: Ports) -> None:
    """Three agents answer with three names."""
    names = set()
    for port in demo.agents:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/status", timeout=10) as answer:
            names.add(json.load(answer)["node"]["name"])
    assert names == {node.name for node in NODES}
