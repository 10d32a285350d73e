"""Judges each tick with all that the agent knows beside the snapshot, and acts on what comes of it."""

import threading
from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec
import structlog

from agent.clock import Clock
from agent.config.settings import DegradedSettings, Settings, VerdictSettings
from agent.host.cgroups import Cgroups
from agent.host.files import Tree
from agent.host.pci import nvidia_bus_ids
from agent.host.pid_namespace import host_pids_visible
from agent.host.processes import Processes
from agent.model.probe import ProbeRecord
from agent.model.process import ProcessReport
from agent.model.snapshot import CardIdentity, CollectorHealth, GpuProcess, Snapshot
from agent.state.store import Store
from agent.verdicts.engine import Engine, Judgement, Rules
from agent.verdicts.references import new_references
from agent.verdicts.registry import CARD_RULES
from agent.verdicts.rules import unjudged
from agent.verdicts.view import Facts

_PROCESSES_EVERY_S: Final = 5.0
_PCI_EVERY_S: Final = 60.0
_TEND_EVERY_S: Final = 5.0


_log = structlog.get_logger("judge")


class Judge:
    """Gathers facts, each at its own pace, and asks the engine; ``add`` may be called from another thread."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        clock: Clock,
        *,
        paused: Callable[[], frozenset[str]],
        suspect: Callable[[str], None],
        foreign: Callable[[Collection[GpuProcess]], tuple[GpuProcess, ...]],
    ) -> None:
        """Take the parts.

        ``paused`` names cards in maintenance, ``suspect`` asks for a probe soon, ``foreign`` leaves out the
        processes of our own probes, which are no workload.
        """
        self._store = store
        self._clock = clock
        self._paused = paused
        self._suspect = suspect
        self._foreign = foreign
        proc, self._sys = Tree(settings.host.proc_root), Tree(settings.host.sys_root)
        trusted = settings.probe.trust_pids
        self._see_processes = trusted == "yes" or (trusted == "auto" and host_pids_visible(proc))
        self._processes = Processes(proc, Cgroups(self._sys, Tree("/sys")), clock)
        self._news = threading.Event()
        self._due_s = {"processes": float("-inf"), "pci": float("-inf"), "store": float("-inf")}
        self._facts = Facts()
        self._seen: tuple[CardIdentity, ...] = ()
        self._rule_errors: Mapping[str, int] = {}
        self._processes_ok: bool | None = None
        """None where process ids mean nothing here, so that none are read."""
        self._processes_unread = 0
        self._judged_by: tuple[VerdictSettings, Rules] | None = None
        self.configure(settings)
        self._refresh_history()

    def configure(self, settings: Settings) -> None:
        """Take other thresholds and rule modes; with them what the engine remembers of the last minutes begins anew."""
        self._limits = settings.verdicts.degraded
        expected = settings.node.expected_gpus
        self._facts = msgspec.structs.replace(self._facts, expected_gpus=expected if expected >= 0 else None)
        judged_by = (settings.verdicts, _rules(settings))
        if judged_by != self._judged_by:
            self._judged_by = judged_by
            self._engine = Engine(settings, judged_by[1], self._store, self._clock)

    def add(self, record: ProbeRecord) -> None:
        """Keep a finished probe; the next judgement knows it."""
        self._store.add_probe(record)
        self._news.set()

    def renew(self) -> None:
        """Take in what an operator changed in the state; the next judgement knows it."""
        self._news.set()

    @property
    def limits(self) -> DegradedSettings:
        """Return the thresholds in force for slow cards."""
        return self._limits

    def judge(self, snapshot: Snapshot) -> Judgement:
        """Return the verdicts on one tick and ask for probes of the cards that look suspect."""
        snapshot = self._without_our_own(snapshot)
        self._gather(snapshot)
        judgement = self._engine.judge(snapshot, self._facts)
        self._rule_errors = judgement.rule_errors
        for uuid in judgement.suspects:
            self._suspect(uuid)
        return judgement

    def health(self) -> tuple[CollectorHealth, ...]:
        """Return how the state file, the rules and the reading of processes fare."""
        state, errors = self._store.health, self._rule_errors
        return (
            CollectorHealth("state", ok=state.durable, errors={str(key): n for key, n in state.errors.items()}),
            CollectorHealth("verdicts", ok=not any(errors.values()), errors=errors),
            CollectorHealth("processes", ok=self._processes_ok, errors={"unreadable": self._processes_unread}),
        )

    def _gather(self, snapshot: Snapshot) -> None:
        now_s = snapshot.taken_monotonic_s
        changes: dict[str, object] = {"paused": self._paused()}
        if self._due("processes", now_s, _PROCESSES_EVERY_S):
            changes["processes"] = self._report(snapshot)
        if self._due("pci", now_s, _PCI_EVERY_S):
            changes["pci_bus_ids"] = nvidia_bus_ids(self._sys)
        seen = tuple(card.identity for card in snapshot.cards if not card.lost)
        if self._due("store", now_s, _TEND_EVERY_S) or seen != self._seen:
            self._seen = seen
            self._store.tend()
            self._store.see_cards(seen)
            changes["inventory"] = tuple(card.identity for card in self._store.inventory())
        self._facts = msgspec.structs.replace(self._facts, **changes)
        if self._news.is_set():
            self._news.clear()
            self._refresh_history()

    def _without_our_own(self, snapshot: Snapshot) -> Snapshot:
        cards = tuple(
            msgspec.structs.replace(card, processes=self._foreign(card.processes)) if card.processes else card
            for card in snapshot.cards
        )
        return msgspec.structs.replace(snapshot, cards=cards)

    def _refresh_history(self) -> None:
        probes, references = self._store.probes(), self._store.references()
        made = new_references(probes, references, self._limits, self._clock.wall_s())
        for reference in made:
            self._store.add_reference(reference)
        self._facts = msgspec.structs.replace(self._facts, probes=probes, references=(*references, *made))

    def _report(self, snapshot: Snapshot) -> ProcessReport | None:
        if not self._see_processes:
            return None
        try:
            report = self._processes.report(gpus_of_pid(snapshot))
        except (OSError, ValueError) as error:
            self._processes_unread += 1
            if self._processes_ok is not False:
                _log.warning("processes_unreadable", error=str(error))
            self._processes_ok = False
            return None
        self._processes_ok = True
        return report

    def _due(self, what: str, now_s: float, period_s: float) -> bool:
        if now_s < self._due_s[what]:
            return False
        self._due_s[what] = now_s + period_s
        return True


def _rules(settings: Settings) -> Rules:
    """Return the rules; where probes of cards are switched off, that a card was not probed is no news."""
    if settings.probe.enabled and settings.probe.device == "gpu":
        return Rules()
    return Rules(cards=tuple(rule for rule in CARD_RULES if rule is not unjudged.RULE))


def gpus_of_pid(snapshot: Snapshot) -> Mapping[int, tuple[str, ...]]:
    """Return the UUIDs of the cards that each process computes on; processes of a desktop are left out."""
    found: dict[int, tuple[str, ...]] = {}
    for card in snapshot.cards:
        for process in card.processes or ():
            if process.kind != "graphics":
                found[process.pid] = (*found.get(process.pid, ()), card.identity.uuid)
    return found
