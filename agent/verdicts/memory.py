"""What the engine remembers between two ticks, and the views it makes of it."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

from agent.model.probe import ProbeRecord
from agent.model.reference import Reference
from agent.model.snapshot import Card, Snapshot
from agent.verdicts import keys
from agent.verdicts.history import RECENT_S, CardHistory, Recorder
from agent.verdicts.processes import ProcessHistory
from agent.verdicts.since import Documents
from agent.verdicts.thermal_memory import ThermalMemory
from agent.verdicts.view import CardView, Facts, Inputs, NodeView, ProcessSpan

_Row = TypeVar("_Row", ProbeRecord, Reference)
Held = Mapping[str, Mapping[str, object]]
"""What held a tick ago: by subject, then by rule."""


class _CardMemory:
    """What stays of one card."""

    def __init__(self, tick_s: float) -> None:
        self.history = CardHistory(keys.RECENT, keys.MINUTE_GAUGES, keys.MINUTE_COUNTERS, tick_s)
        self.probes: tuple[ProbeRecord, ...] = ()
        self.references: tuple[Reference, ...] = ()
        self.processes: tuple[ProcessSpan, ...] = ()
        self.seen_s = 0.0


class Memory:
    """Bounded: minutes of readings, hours of minutes, and only of cards seen in the last minutes."""

    def __init__(self, tick_s: float, process_span_s: float, documents: Documents) -> None:
        self._tick_s = tick_s
        self._cards: dict[str, _CardMemory] = {}
        self._node = Recorder(keys.NODE, max(1.0, tick_s), RECENT_S)
        self._processes = ProcessHistory(process_span_s)
        self._thermal = ThermalMemory(documents)
        self._facts = Facts()

    def remember(self, snapshot: Snapshot, facts: Facts) -> dict[str, set[Inputs]]:
        """Take a tick in; return which inputs of rules are new, by card."""
        news: set[Inputs] = {"readings"}
        if facts.probes is not self._facts.probes or facts.references is not self._facts.references:
            news.add("probes")
        self._facts = facts
        self._node.add(snapshot.taken_monotonic_s, _node_row(snapshot))
        due = {card.identity.uuid: self._remember_card(card, snapshot, set(news)) for card in snapshot.cards}
        if self._processes.add(facts.processes) or facts.processes is None:
            spans = self._processes.spans()
            for uuid, memory in self._cards.items():
                memory.processes = spans.get(uuid, ())
        now_s = snapshot.taken_monotonic_s
        for uuid in [uuid for uuid, memory in self._cards.items() if now_s - memory.seen_s > RECENT_S]:
            del self._cards[uuid]
        return due

    def _remember_card(self, card: Card, snapshot: Snapshot, due: set[Inputs]) -> set[Inputs]:
        """Take one card's readings in; return which inputs are new for it."""
        uuid = card.identity.uuid
        memory = self._cards.get(uuid)
        if memory is None:
            memory = self._cards[uuid] = _CardMemory(self._tick_s)
            due = {"readings", "minutes", "probes"}
        memory.seen_s = snapshot.taken_monotonic_s
        if memory.history.add(snapshot.taken_monotonic_s, _card_row(card)):
            due.add("minutes")
        if "probes" in due:
            memory.probes = _own(self._facts.probes, uuid, memory.probes)
            memory.references = _own(self._facts.references, uuid, memory.references)
        if "minutes" in due:
            self._thermal.watch(uuid, memory.history.recent, memory.history.minutes, snapshot.taken_wall_s)
        return due

    def card_views(self, snapshot: Snapshot, held: Held) -> tuple[CardView, ...]:
        """Return each card's view, its peers included."""
        alone = [self._view(card, snapshot, frozenset(held.get(card.identity.uuid, ()))) for card in snapshot.cards]
        by_model: dict[str, list[CardView]] = {}
        for view in alone:
            by_model.setdefault(view.card.identity.name, []).append(view)
        return tuple(
            msgspec.structs.replace(
                view, peers=tuple(peer for peer in by_model[view.card.identity.name] if peer is not view)
            )
            for view in alone
        )

    def _view(self, card: Card, snapshot: Snapshot, held: frozenset[str]) -> CardView:
        """Return a card's view without its peers."""
        uuid = card.identity.uuid
        memory = self._cards[uuid]
        return CardView(
            now_monotonic_s=snapshot.taken_monotonic_s,
            now_wall_s=snapshot.taken_wall_s,
            card=card,
            recent=memory.history.recent,
            minutes=memory.history.minutes,
            probes=memory.probes,
            references=memory.references,
            processes=memory.processes,
            resistances=self._thermal.of(uuid),
            paused=uuid in self._facts.paused,
            held=held,
        )

    def node_view(self, snapshot: Snapshot, cards: tuple[CardView, ...]) -> NodeView:
        """Return the node's view."""
        facts = self._facts
        return NodeView(
            now_monotonic_s=snapshot.taken_monotonic_s,
            now_wall_s=snapshot.taken_wall_s,
            nvml=snapshot.nvml,
            cards=cards,
            expected_gpus=facts.expected_gpus,
            pci_bus_ids=facts.pci_bus_ids,
            inventory=facts.inventory,
            paused=facts.paused,
            recent=self._node.window,
            health=snapshot.health,
            probes=facts.probes,
        )


def _own(rows: Sequence[_Row], uuid: str, known: tuple[_Row, ...]) -> tuple[_Row, ...]:
    """Return the rows of one card: the tuple that is known where nothing is new, so that identity tells news."""
    own = tuple(row for row in rows if row.uuid == uuid)
    same = len(own) == len(known) and all(one is other for one, other in zip(own, known, strict=True))
    return known if same else own


def _card_row(card: Card) -> Mapping[str, float]:
    """Return what is remembered of a card in one tick."""
    return {**card.values, keys.LOST: float(bool(card.lost)), keys.SILENT: float(not card.values)}


def _node_row(snapshot: Snapshot) -> Mapping[str, float]:
    """Return what is remembered of the node in one tick."""
    return {
        keys.NVML_UP: float(snapshot.nvml.up),
        keys.HUNG: float(snapshot.nvml.hung_s > 0),
        keys.CARDS_PRESENT: float(len(snapshot.cards)),
    }
