"""The composition root: the command line, and the only module that knows both agent and exporters."""

import os
import sys
import traceback
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import agent.logs as logs

# isort: split
import click
import structlog

from agent import usage
from agent.allocation.watch import AllocationWatch
from agent.clock import Clock, SystemClock
from agent.config.listen import parse_listen
from agent.config.load import changes_needing_restart, unknown_variables, until_restart
from agent.config.settings import Settings
from agent.control import ControlError, ControlServer
from agent.daemon import Daemon
from agent.errors import EXIT_INTERNAL, EXIT_OK, ConfigError, HeatsoakError, ListenError
from agent.host.collect import HOST_METRICS, build
from agent.host.files import Tree
from agent.init import leave_init_behind
from agent.invocation import Invocation
from agent.judge import Judge
from agent.lazy import LazyGroup
from agent.liveness import Liveness, is_contained
from agent.maintenance import Maintenance
from agent.model.snapshot import CollectorHealth, Snapshot
from agent.notify import Notifier
from agent.nvml.client import ReaderClient
from agent.nvml.recording import ReplaySource
from agent.nvml.source import CardSource
from agent.probes.counts import METRICS as PROBE_METRICS
from agent.probes.service import ProbeService
from agent.probes.tenants import pids_are_the_hosts
from agent.state.actions import Actions
from agent.state.store import Store
from agent.wakeup import SignalWakeup
from exporters.board import Board
from exporters.errors import CannotListen, WebConfigError
from exporters.web.config import faults_of
from exporters.web.listen import activated_listeners, open_listeners
from exporters.web.server import WebServer
from exporters.web.site import build_site

_STALE_TICKS: Final = 3
_COMMANDS: Final = {
    "check": ("agent.verdicts.check:check", "One line per card from the running agent; exit code for scripts."),
    "doctor": ("agent.doctor.command:doctor", "What keeps this machine from figures to be trusted."),
    "probe": ("agent.probes.command:probe", "Run one probe now, or --quick to judge the idle cards."),
    "bench": ("agent.bench.command:bench", "Measure a card, to compare across machines, images and clouds."),
    "compare": ("agent.compare.command:compare", "Rank results by speed, price, power and cost, like with like."),
    "estimate": ("agent.compare.estimate_command:estimate", "How long a training takes, and what it costs."),
    "record": ("agent.nvml.command:record", "Save what the cards say, to be played with run --replay."),
    "pause": ("agent.operator:pause", "Let go of cards: for a reset, MIG mode, a driver upgrade."),
    "resume": ("agent.operator:resume", "Take paused cards up again."),
    "reference": ("agent.state.command:reference", "Show, renew, export or import what a card once measured."),
    "inventory": ("agent.state.command:inventory", "Which cards belong to this node."),
    "config": ("agent.config.command:config", "Check, show or sample the configuration."),
}

_log = structlog.get_logger("agent")


def version() -> str:
    """Return the version of the installed distribution; ``unknown`` in a tree that was not installed."""
    try:
        return metadata.version("heatsoak")
    except metadata.PackageNotFoundError:
        return "unknown"


class Agent:
    """The running agent: its parts, put together in the order in which data flows."""

    def __init__(self, invocation: Invocation, settings: Settings, source: CardSource | None, clock: Clock) -> None:
        """Open the listeners, then the state, then compose the rest; nothing runs yet.

        Raises:
            ListenError: an address cannot be listened on.
            ConfigError: the web configuration cannot be used.
            StateError: another agent uses the state directory.
        """
        self._invocation, self._settings, self._clock = invocation, settings, clock
        directory = invocation.state_directory(settings)
        self._wakeup = SignalWakeup()
        self._notifier = Notifier(invocation.environ)
        self._board = Board()
        self._liveness = Liveness(settings.agent.tick_s, clock, contained=is_contained(invocation.environ))
        self._server = self._open_server(settings)
        self._store = Store.open(directory, clock)
        self._maintenance = Maintenance(self._store, clock)
        self._source = source or ReaderClient(settings.nvml, clock)
        proc = Tree(settings.host.proc_root) if pids_are_the_hosts(settings.probe.trust_pids) else None
        self._allocations = AllocationWatch(settings.allocation, proc, clock)
        self._probes = ProbeService(
            settings.probe, settings.pipeline, self._source, clock, directory,
            sink=lambda record: self._judge.add(record), paused=self._maintenance.paused,
            allocated=self._allocations.given_away,
        )  # fmt: skip
        self._judge = Judge(
            settings, self._store, clock, paused=self._maintenance.paused, suspect=self._probes.suspect,
            foreign=self._probes.foreign,
        )  # fmt: skip
        self._control = ControlServer(
            invocation.control_socket(settings),
            {
                "addresses": self._on_addresses, "pause": self._on_pause, "resume": self._on_resume,
                **self._state_actions().handlers(),
            },
        )  # fmt: skip
        self._daemon = Daemon(
            tick_s=settings.agent.tick_s, base=_base(settings), source=self._source,
            host=build(settings.host, clock), probes=self._probes, judge=self._judge, allocations=self._allocations,
            publish=self._publish, further_health=self._health, reload=self._reload, clock=clock,
            wakeup=self._wakeup, notifier=self._notifier,
        )  # fmt: skip

    def run(self) -> None:
        """Serve, tick and probe until SIGTERM or SIGINT; then end every child and leave."""
        self._wakeup.install()
        self._source.pause(self._maintenance.paused())
        self._server.start()
        self._control.start()
        self._probes.remember(self._store.probes())
        self._allocations.start()
        self._probes.start()
        _log.info("agent_started", version=version(), addresses=self._server.addresses)
        self._say_ready()
        try:
            self._daemon.run()
        finally:
            self._close()

    def _close(self) -> None:
        _log.info("agent_stopping")
        self._notifier.stopping()
        self._probes.stop(timeout_s=2.0)
        self._allocations.stop(timeout_s=0.5)
        self._source.close(timeout_s=1.0)
        self._control.close()
        self._server.stop(timeout_s=1.0)
        self._store.close()
        self._wakeup.retire()

    def _open_server(self, settings: Settings) -> WebServer:
        web = settings.web
        try:
            listeners = activated_listeners(dict(self._invocation.environ), os.getpid()) or open_listeners(
                [parse_listen(text) for text in web.listen]
            )
            return build_site(
                listeners, board=self._board, clock=self._clock, version=version(),
                definitions=(*HOST_METRICS, *PROBE_METRICS), standstill=self._liveness.trouble,
                stale_after_s=_STALE_TICKS * max(1.0, settings.agent.tick_s), config_file=web.config_file,
                max_connections=web.max_connections, timeout_s=web.timeout_s,
            )  # fmt: skip
        except CannotListen as error:
            raise ListenError(str(error)) from error
        except WebConfigError as error:
            raise ConfigError(list(error.faults)) from error

    def _health(self) -> tuple[CollectorHealth, ...]:
        return (*self._judge.health(), *self._allocations.health())

    def _publish(self, snapshot: Snapshot) -> None:
        self._board.publish(snapshot)
        self._liveness.moved(snapshot)

    def _reload(self) -> None:
        """Take over a changed configuration as a whole, or none of it."""
        self._notifier.reloading(self._clock.monotonic_s())
        try:
            wanted = self._invocation.settings()
        except ConfigError as error:
            _log.error("reload_refused", faults=error.faults)
        else:
            for name in changes_needing_restart(self._settings, wanted):
                _log.warning("setting_needs_restart", setting=name)
            settings = until_restart(self._settings, wanted)
            logs.configure(settings.log, self._invocation.environ, sys.stderr)
            self._daemon.base = _base(settings)
            self._daemon.host = build(settings.host, self._clock)
            self._judge.configure(settings)
            self._probes.reconfigure(settings.probe, settings.pipeline)
            self._settings = settings
            _log.info("reloaded")
        self._say_ready()

    def _say_ready(self) -> None:
        self._notifier.ready(f"serving on {', '.join(self._server.addresses)}")

    def _on_addresses(self, _request: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"addresses": self._server.addresses}

    def _on_pause(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        uuids = self._named(request)
        for_s = request.get("for_s")
        if for_s is not None and (not isinstance(for_s, (int, float)) or not 0 < for_s < float("inf")):
            raise ControlError(f"for_s is {for_s!r}; right would be a positive number of seconds")
        self._maintenance.pause(uuids, for_s)
        self._source.pause(uuids)
        return {"uuids": uuids}

    def _on_resume(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        uuids = [uuid for uuid in self._named(request) if uuid in self._maintenance.paused()]
        self._maintenance.resume(uuids)
        self._source.resume(uuids)
        return {"uuids": uuids}

    def _state_actions(self) -> Actions:
        return Actions(
            self._store, self._clock, lambda: self._judge.limits, present=self._present, changed=self._judge.renew
        )

    def _present(self) -> frozenset[str] | None:
        snapshot = self._board.latest()
        if snapshot is None or not snapshot.nvml.up:
            return None
        return frozenset(card.identity.uuid for card in snapshot.cards) | self._maintenance.paused()

    def _named(self, request: Mapping[str, Any]) -> list[str]:
        snapshot = self._board.latest()
        known = {str(card.identity.index): card.identity.uuid for card in snapshot.cards} if snapshot else {}
        if not known:
            raise ControlError(f"no card is known here, so there is none to {request['command']}")
        wanted = request.get("gpus") or list(known)
        uuids = [known.get(str(name), str(name)) for name in wanted] if isinstance(wanted, list) else []
        strangers = sorted(set(uuids) - set(known.values()))
        if strangers or not uuids:
            raise ControlError(
                f"gpus is {wanted!r}; right would be a list of indices or UUIDs out of: "
                f"{', '.join(f'{index} ({uuid})' for index, uuid in known.items())}"
            )
        return uuids


def _base(settings: Settings) -> Snapshot:
    return Snapshot(
        taken_monotonic_s=0.0,
        taken_wall_s=0.0,
        hostname=settings.node.name or os.uname().nodename,
        rack=settings.node.rack,
        position=settings.node.position,
    )


@click.group(cls=LazyGroup, lazy=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--config",
    "config_path",
    metavar="FILE",
    help="TOML file. Default: HEATSOAK_CONFIG, else /etc/heatsoak/heatsoak.toml if it exists.",
)
@click.option(
    "--state-dir",
    default="",
    metavar="DIR",
    help="State directory. Default: HEATSOAK_STATE_DIR, $STATE_DIRECTORY, /var/lib/heatsoak for root, "
    "else ~/.local/state/heatsoak.",
)
@click.version_option(version(), prog_name="heatsoak")
@click.pass_context
def cli(context: click.Context, config_path: str | None, state_dir: str) -> None:
    """Tell which GPU is slow, and why."""
    context.obj = Invocation(
        environ=dict(os.environ), uid=os.geteuid(), config_path=config_path, state_dir=state_dir, web_faults=faults_of
    )


@cli.command()
@click.option("--replay", type=click.Path(path_type=Path), help="Play a recording instead of reading cards.")
@click.option("--speed", type=click.FloatRange(0.1, 1000), default=1.0, help="How much faster to play it.")
@click.pass_context
def run(context: click.Context, replay: Path | None, speed: float) -> None:
    """Run the agent: measure, probe, judge, serve."""
    invocation: Invocation = context.obj
    if replay is None:
        usage.refuse(context, ("speed",), "without --replay")
    leave_init_behind()
    settings = invocation.settings()
    logs.configure(settings.log, invocation.environ, sys.stderr)
    for line in unknown_variables(invocation.environ):
        _log.warning("unknown_variable", detail=line)
    clock = SystemClock()
    source = ReplaySource(replay, clock, speed) if replay else None
    Agent(invocation, settings, source, clock).run()


def main() -> None:
    """Run the command line and exit with its documented code."""
    raise SystemExit(_main())


def _main() -> int:
    try:
        code = cli(standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("heatsoak: interrupted", err=True)
        return 130
    except HeatsoakError as error:
        for line in str(error).splitlines():
            click.echo(f"heatsoak: {line}", err=True)
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output left
        return EXIT_OK
    except Exception:  # noqa: BLE001 - the edge of the process: a fault of ours gets its own exit code
        traceback.print_exc()
        click.echo("heatsoak: internal error, please report it with the lines above", err=True)
        return EXIT_INTERNAL
    return code if isinstance(code, int) else EXIT_OK


if __name__ == "__main__":
    main()
