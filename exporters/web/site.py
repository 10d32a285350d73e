"""Puts the web side together: the one place that knows all of its parts, in reading order."""

import socket
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol

from agent.model.metrics import Metric
from exporters.board import Board
from exporters.page import StatusPage
from exporters.prometheus import MetricsPage
from exporters.web.access import Gate
from exporters.web.app import App
from exporters.web.config import FixedConfig, WatchedConfig
from exporters.web.server import WebServer
from exporters.web.stats import WebStats


class Clock(Protocol):
    """The agent's clock, as far as it is needed here."""

    def monotonic_s(self) -> float:
        """Return seconds on a clock that never steps."""

    def wall_s(self) -> float:
        """Return seconds since the Unix epoch."""


def build_site(
    listeners: Sequence[socket.socket],
    *,
    board: Board,
    clock: Clock,
    version: str,
    definitions: Iterable[Metric],
    standstill: Callable[[], str],
    stale_after_s: float,
    config_file: str = "",
    max_connections: int = 256,
    timeout_s: float = 10.0,
) -> WebServer:
    """Return a server over ``listeners`` (see ``exporters.web.listen``), ready to start.

    ``definitions`` describe the samples of the host and of the probe schedule. ``standstill`` returns why the
    agent's loop does not move, or empty text. Snapshots older than ``stale_after_s`` lose their readings.

    Raises:
        WebConfigError: the web configuration in ``config_file`` cannot be used.
    """
    stats = WebStats()
    config = WatchedConfig(Path(config_file), stats, clock.monotonic_s) if config_file else FixedConfig()
    app = App(
        latest=board.latest,
        metrics=MetricsPage(version=version, definitions=definitions, own=stats.families),
        page=StatusPage(version=version, host_rates=board.host_rates),
        version=version,
        standstill=standstill,
        monotonic_s=clock.monotonic_s,
        stale_after_s=stale_after_s,
    )
    return WebServer(
        Gate(app, config, stats, clock.monotonic_s),
        listeners,
        config=config,
        stats=stats,
        wall_s=clock.wall_s,
        max_connections=max_connections,
        timeout_s=timeout_s,
    )
