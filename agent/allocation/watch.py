"""Asks who holds which card every ten seconds, in a thread of its own: no tick ever waits for the answer."""

import importlib
import threading
from collections.abc import Callable
from types import MappingProxyType
from typing import Final

import msgspec
import structlog

from agent.allocation.jobs import jobs_of_processes, noted_jobs
from agent.allocation.pod_resources import allocations, holdings
from agent.clock import Clock
from agent.config.settings import AllocationSettings
from agent.errors import ConfigError, HeatsoakError
from agent.host.files import Tree
from agent.model.allocation import Allocation
from agent.model.snapshot import Card, CollectorHealth, Snapshot

PERIOD_S: Final = 10.0
DEADLINE_S: Final = 2.0
STALE_S: Final = 3 * PERIOD_S
"""After this long without an answer nobody knows any more who holds a card."""
REASONS: Final = ("kubelet", "malformed", "jobs_dir")

_log = structlog.get_logger("allocation")

ListPodResources = Callable[[str, Clock, float], bytes]


class Known(msgspec.Struct, frozen=True):
    """The last whole answer."""

    taken_s: float
    """On the monotonic clock."""
    allocations: tuple[Allocation, ...]


class AllocationWatch:
    """Keeps the last answer; off, and free of cost, unless the settings name a source."""

    def __init__(self, settings: AllocationSettings, proc: Tree | None, clock: Clock) -> None:
        """Take the settings, and the host's /proc or None where process ids mean nothing.

        Raises:
            ConfigError: the kubelet is to be asked and the package for it is not installed.
        """
        self._settings = settings
        self._proc = proc
        self._clock = clock
        self._on = bool(settings.pod_resources or settings.slurm)
        self._ask = _kubelet() if settings.pod_resources else None
        self._cards: tuple[Card, ...] = ()
        self._known: Known | None = None
        self._health = CollectorHealth("allocation", errors=MappingProxyType(dict.fromkeys(REASONS, 0)))
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="allocation", daemon=True)

    def start(self) -> None:
        """Start to ask."""
        if self._on:
            self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """End, within ``timeout_s`` or a call's deadline."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)

    def observe(self, snapshot: Snapshot) -> None:
        """Take in which cards there are and what runs on them."""
        self._cards = snapshot.cards

    def latest(self) -> tuple[Allocation, ...]:
        """Return who holds which card, empty where that is not known."""
        known = self._fresh()
        return known.allocations if known else ()

    def given_away(self) -> frozenset[str] | None:
        """Return the UUIDs of cards that somebody holds; None where somebody could and nobody can tell."""
        if not self._on:
            return frozenset()
        known = self._fresh()
        return frozenset(allocation.uuid for allocation in known.allocations) if known else None

    def health(self) -> tuple[CollectorHealth, ...]:
        """Return how the asking fares; nothing where it is off."""
        return (self._health,) if self._on else ()

    def poll(self) -> None:
        """Ask once; what goes wrong is counted, and the last answer stands until it is stale."""
        start_s = self._clock.monotonic_s()
        found: tuple[Allocation, ...] = ()
        reason = trouble = ""
        try:
            found = self._pods() + self._jobs()
        except (HeatsoakError, OSError, ValueError) as error:
            reason, trouble = _reason(error), str(error)
        else:
            self._known = Known(start_s, found)
        self._account(reason, trouble, self._clock.monotonic_s() - start_s)

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._cards:
                self.poll()
            self._clock.wait(self._stopping, PERIOD_S if self._cards else 0.5)

    def _fresh(self) -> Known | None:
        known = self._known
        return known if known and self._clock.monotonic_s() - known.taken_s <= STALE_S else None

    def _pods(self) -> tuple[Allocation, ...]:
        if self._ask is None:
            return ()
        answer = self._ask(self._settings.pod_resources, self._clock, DEADLINE_S)
        return allocations(holdings(answer), [card.identity for card in self._cards])

    def _jobs(self) -> tuple[Allocation, ...]:
        if not self._settings.slurm:
            return ()
        cards = self._cards
        noted: tuple[Allocation, ...] = ()
        if self._settings.jobs_dir:
            noted = noted_jobs(Tree(self._settings.jobs_dir), [card.identity for card in cards])
        running = jobs_of_processes(self._proc, cards) if self._proc else ()
        return tuple(dict.fromkeys((*noted, *running)))

    def _account(self, reason: str, trouble: str, duration_s: float) -> None:
        last = self._health
        errors = MappingProxyType({**last.errors, reason: last.errors[reason] + 1}) if reason else last.errors
        self._health = CollectorHealth(
            name=last.name,
            attempts=last.attempts + 1,
            ok=not reason,
            last_success_wall_s=last.last_success_wall_s if reason else self._clock.wall_s(),
            duration_s=duration_s,
            errors=errors,
        )
        if reason and last.ok is not False:
            _log.warning("allocation_unknown", reason=reason, error=trouble)
        elif not reason and last.ok is False:
            _log.info("allocation_known_again")


def _kubelet() -> ListPodResources:
    """Return the call, of a module that is loaded only where it is wanted."""
    try:
        module = importlib.import_module("agent.allocation.kubelet")
    except ImportError as error:
        wanted = "pip install 'heatsoak[kubernetes]'"
        raise ConfigError([f"allocation.pod_resources: {error}; it needs the package h2: {wanted}"]) from error
    call: ListPodResources = module.list_pod_resources
    return call


def _reason(error: Exception) -> str:
    if isinstance(error, ValueError):
        return "malformed"
    return "kubelet" if isinstance(error, HeatsoakError) else "jobs_dir"
