"""The composition with Grafana: what it mounts is there, ports and data source are the demo's."""

from pathlib import Path
from typing import Any

import yaml

from deploy.demo.servers import Ports

COMPOSE = Path(__file__).parents[3] / "deploy" / "compose"


def read(name: str) -> dict[str, Any]:
    """Return a YAML file of deploy/compose."""
    found: dict[str, Any] = yaml.safe_load((COMPOSE / name).read_text(encoding="utf-8"))
    return found


def test_everything_mounted_and_built_from_is_there() -> None:
    """A path that is gone would become an empty directory in the container."""
    services = read("compose.yaml")["services"]
    for mount in services["grafana"]["volumes"]:
        assert (COMPOSE / mount.partition(":")[0]).exists(), mount
    build = services["demo"]["build"]
    root = COMPOSE / build["context"]
    assert (root / build["dockerfile"]).is_file()
    for line in (root / build["dockerfile"]).read_text().splitlines():
        if line.startswith("COPY"):
            assert all((root / name).exists() for name in line.split()[1:-1]), line


def test_it_publishes_the_demos_ports_to_this_machine_only() -> None:
    """Nothing of a demo is offered to the network."""
    published = read("compose.yaml")["services"]["demo"]["ports"]
    ports = Ports()
    agents = f"{ports.agents[0]}-{ports.agents[-1]}"
    wanted = ("3000", str(ports.prometheus), str(ports.alertmanager), agents)
    assert published == [f"127.0.0.1:{port}:{port}" for port in wanted]


def test_grafana_reads_the_demos_prometheus() -> None:
    """It shares the demo's network, so the address is localhost."""
    assert read("compose.yaml")["services"]["grafana"]["network_mode"] == "service:demo"
    (source,) = read("grafana/datasources.yaml")["datasources"]
    assert source["url"] == f"http://localhost:{Ports().prometheus}"
    assert source["type"] == "prometheus"
