"""`make demo`: everything at once, until Ctrl-C."""

import signal
import sys
import threading
from pathlib import Path

import click

from deploy.demo.backfill import DemoError
from deploy.demo.servers import Ports, running
from deploy.demo.story import NODES


@click.command()
@click.option("--directory", type=click.Path(path_type=Path), default=Path(".build/demo"), help="Emptied, then used.")
@click.option("--listen", default="127.0.0.1", show_default=True, help="Address that everything listens on.")
def demo(directory: Path, listen: str) -> None:
    """Play a burn-in, a starving job and a node without a card to a real Prometheus and Alertmanager."""
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    ports = Ports(address=listen)
    try:
        with running(directory.resolve(), ports, lambda line: click.echo(f"… {line}")):
            click.echo(_addresses(ports))
            stop.wait()
            click.echo("… ending what was started")
    except DemoError as error:
        click.echo(f"demo: {error}", err=True)
        sys.exit(1)


def _addresses(ports: Ports) -> str:
    agents = "\n".join(
        f"  http://localhost:{port}/  {node.name}: {_about(len(node.seats))}"
        for node, port in zip(NODES, ports.agents, strict=True)
    )
    return f"""
{agents}
  http://localhost:{ports.prometheus}/alerts  Prometheus: within two minutes CardThermalThrottling (GPU 2),
      CardDegraded (GPU 5) and WorkloadInputBound fire; waiting times are cut down to 15 s here
  http://localhost:{ports.alertmanager}/  Alertmanager
  grafana/dashboards/*.json: import them into a Grafana whose data source is that Prometheus (scrape interval 30s),
      or let deploy/compose bring one along
Ctrl-C ends it."""


def _about(cards: int) -> str:
    return {8: "a burn-in on eight cards", 2: "a job that starves its card"}.get(cards, "no card")


if __name__ == "__main__":
    demo()
