"""Probing without an agent, for the command line: cards read and watched, one probe child per card."""

import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import msgspec

from agent.clock import Clock
from agent.config.settings import ProbeSettings
from agent.errors import ConfigError
from agent.model.probe import ChildEvent, ProbeRecord, ProbeRequest
from agent.model.snapshot import Card, NvmlHealth, Snapshot
from agent.nvml.advice import STARTING
from agent.nvml.source import CardSource
from agent.probes.cards import Cards
from agent.probes.job import Job, Setup
from agent.probes.memory import needed_mib, why_not_host
from agent.probes.outcome import Failure, failed_result
from agent.probes.runner import ProbeRunner

TICK_S: Final = 0.2
LONGEST_REST_S: Final = 1.0
"""Who asks now does not wait for a card to rest for longer than this."""

OnEvent = Callable[[ChildEvent], None]


class ProbeSession:
    """Reads the cards in a thread of its own, from ``start`` to ``close``; any thread may ``run`` probes."""

    def __init__(
        self,
        settings: ProbeSettings,
        source: CardSource | None,
        clock: Clock,
        directory: Path,
        workloads: Path | None = None,
    ) -> None:
        """Take the parts; without a ``source`` only the CPU can be probed. The session closes the source."""
        rest_s = min(settings.idle_s, LONGEST_REST_S)
        self._settings = msgspec.structs.replace(settings, idle_s=rest_s)
        self._source = source
        self._clock = clock
        self._directory = directory
        self._workloads = workloads
        self._cards = Cards(self._settings, self._sessions)
        self._runners: list[ProbeRunner] = []
        self._busy: set[str] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._tick_on, name="cards", daemon=True)
        self.nvml = NvmlHealth()
        """How the driver fares, as of the last tick."""

    def start(self) -> None:
        """Start to read the cards."""
        if self._source is not None:
            self._thread.start()

    def close(self) -> None:
        """End running children and the reader."""
        self.interrupt()
        if self._source is not None:
            self._thread.join(timeout=2.0)
            self._source.close(timeout_s=1.0)

    def settle(self, timeout_s: float) -> tuple[Card, ...]:
        """Wait until every card has been seen at rest or not, at most ``timeout_s``; return the cards."""
        until_s = self._clock.monotonic_s() + timeout_s
        while self._source is not None and self._clock.monotonic_s() < until_s:
            cards = self._cards.all()
            if cards and not any(self.why_not(card.identity.uuid) for card in cards):
                break
            if not self.nvml.up and self.nvml.error not in ("", STARTING):
                break
            if self._clock.wait(self._stopping, TICK_S):
                break
        return self._cards.all()

    def choose(self, gpus: Collection[str], timeout_s: float) -> tuple[Card, ...]:
        """Return the cards that ``gpus`` names by index or UUID, all where it is empty, once they are settled.

        Raises:
            ConfigError: There is no card of a name.
        """
        cards = self.settle(timeout_s)
        known = {str(card.identity.index): card for card in cards} | {card.identity.uuid: card for card in cards}
        strangers = [gpu for gpu in gpus if gpu not in known]
        if strangers:
            names = ", ".join(f"{card.identity.index} ({card.identity.uuid})" for card in cards) or "none"
            raise ConfigError([f"--gpu {gpu}: no such card; there are: {names}" for gpu in strangers])
        return tuple(card for card in cards if not gpus or {str(card.identity.index), card.identity.uuid} & set(gpus))

    def why_not(self, uuid: str) -> str | None:
        """Return the reason why a card is not to be probed now; None where it may be."""
        return self._cards.why_not(uuid, self._clock.monotonic_s(), exclusive=True)

    def run(
        self,
        requests: tuple[ProbeRequest, ...],
        uuid: str | None,
        *,
        on_event: OnEvent = lambda _event: None,
        force: bool = False,
        deadline_s: float | None = None,
        setup: Setup = Setup(),  # noqa: B008 - frozen
        trigger: str = "command",
    ) -> tuple[ProbeRecord, ...]:
        """Run one child on the card ``uuid`` and its companions, or on the CPU (None), and return its records.

        Nothing runs where a card is not at rest unless ``force``; the result then is marked contended where
        somebody was there. ``deadline_s`` replaces the configured one.
        """
        uuids = [uuid, *(card.identity.uuid for card in setup.companions)] if uuid else []
        card = self._cards.get(uuid) if uuid else None
        needed = needed_mib(requests, "gpu" if uuid else "cpu", self._settings.host_memory_mib)
        reason = why_not_host(needed) or self._why_not_any(uuids, force=force)
        if reason:
            return self._skipped(requests, card, uuid or "cpu", reason, trigger)
        settings = msgspec.structs.replace(self._settings, deadline_s=deadline_s or self._settings.deadline_s)
        runner = ProbeRunner(
            settings, self._source, self._clock, self._directory, tenants=self._cards.tenants, workloads=self._workloads
        )
        self._runners.append(runner)
        self._busy.update(uuids)
        at_liberty = bool(setup.companions) or any(request.probe == "pipeline" for request in requests)
        threads = 0 if at_liberty else self._settings.threads
        job = Job(
            requests=requests, card=card, trigger=trigger, threads=threads, yield_to_tenants=False, setup=setup
        )  # fmt: skip
        return runner.run(job, lambda: "shutting_down" if self._stopping.is_set() else "", on_event).records

    def interrupt(self) -> None:
        """End running children; their records say so."""
        self._stopping.set()

    def _tick_on(self) -> None:
        assert self._source is not None  # noqa: S101 - the thread starts with a source only
        while not self._stopping.is_set():
            start_s = self._clock.monotonic_s()
            self._source.begin_tick()
            reading = self._source.end_tick(start_s + TICK_S / 2)
            self.nvml = reading.nvml
            snapshot = Snapshot(start_s, self._clock.wall_s(), cards=reading.cards, nvml=reading.nvml)
            self._cards.observe(snapshot, self._busy)
            self._clock.wait(self._stopping, start_s + TICK_S - self._clock.monotonic_s())

    def _why_not_any(self, uuids: list[str], *, force: bool) -> str | None:
        """Return the first reason why one of the cards is not to be probed now."""
        for uuid in uuids:
            reason = "no_telemetry" if self._cards.get(uuid) is None else None if force else self.why_not(uuid)
            if reason:
                return reason
        return None

    def _sessions(self) -> Collection[int]:
        return [session for runner in self._runners for session in runner.sessions]

    def _skipped(
        self, requests: tuple[ProbeRequest, ...], card: Card | None, uuid: str, reason: str, trigger: str
    ) -> tuple[ProbeRecord, ...]:
        return tuple(
            ProbeRecord(
                wall_s=self._clock.wall_s(),
                gpu=card.identity.index if card else None,
                uuid=uuid,
                result=failed_result(request, Failure("skipped", reason)),
                trigger=trigger,
            )
            for request in requests
        )
