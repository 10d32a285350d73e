"""What is known of the cards: identities, values by tier with their age, accumulated counters.

Fed with the reader's messages, live or recorded; the one place where a driver's number gets the unit
of its row and where what nobody can believe is dropped.
"""

from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from agent.model.quantities import BY_KEY
from agent.model.snapshot import Card, CardIdentity, GpuProcess
from agent.model.vocabulary import TIER_PERIOD_S, Tier
from agent.nvml import derive
from agent.nvml.protocol import CardFound, Hello, Values

STALE_PERIODS: Final = 3


def believable(raw: Mapping[str, float | None]) -> tuple[dict[str, float], list[str]]:
    """Return the values of known rows in their units, and the keys of those outside their range."""
    values: dict[str, float] = {}
    dropped: list[str] = []
    for key, number in raw.items():
        row = BY_KEY.get(key)
        if row is None:
            continue
        value = None if number is None else number * row.scale / row.divisor
        if value is not None and row.low <= value <= row.high:
            values[key] = value
        else:
            dropped.append(key)
    for key in [key for key in values if BY_KEY[key].at_most]:
        if values[key] > values.get(BY_KEY[key].at_most, values[key]):
            del values[key]
            dropped.append(key)
    return values, dropped


class _Timed(msgspec.Struct, frozen=True):
    taken_s: float
    values: dict[str, float]


class _Record:
    """One card of this session."""

    def __init__(self, identity: CardIdentity, *, events: bool) -> None:
        self.identity = identity
        self.events = events
        self.tiers: dict[Tier, _Timed] = {}
        self.processes: tuple[GpuProcess, ...] | None = None
        self.lost = ""

    @property
    def owner(self) -> str:
        return self.identity.uuid or f"#{self.identity.index}"

    def forget_values(self) -> None:
        self.tiers.clear()
        self.processes = None

    def fresh(self, tier: Tier, now_s: float) -> bool:
        timed = self.tiers.get(tier)
        return timed is not None and now_s - timed.taken_s <= STALE_PERIODS * TIER_PERIOD_S[tier]


class CardStore:
    """All cards, by their NVML index; counters stay with a card's UUID over readers and drivers."""

    def __init__(self, off: Collection[str] = ()) -> None:
        """Take the keys of quantities that are not served."""
        self._off = frozenset(off)
        self._unconfirmed: set[int] = set()
        self.driver = Hello(count=0)
        self.dropped: dict[str, int] = {}
        self._records: dict[int, _Record] = {}
        self._throttle: dict[str, derive.ThrottleTime] = {}
        self._xids: dict[str, derive.XidHistory] = {}

    def begin(self, hello: Hello, left_out: Collection[int]) -> None:
        """Start a session: each card of the last one has to be found again, or be left out on purpose."""
        self.driver = hello
        self._unconfirmed = set(self._records) - set(left_out)
        for index in left_out:
            self._records.setdefault(index, _unknown(index))

    def settle(self) -> None:
        """End the search for cards: those that were not found again are gone."""
        for index in self._unconfirmed:
            del self._records[index]
        self._unconfirmed = set()

    def found(self, card: CardFound) -> None:
        """Take a card's identity; values that the card with this index and UUID already has stay."""
        known = self._records.get(card.card)
        if card.lost:
            record = known or _unknown(card.card)
            record.forget_values()
        else:
            record = _Record(_identity(card, self.driver.driver), events=card.events)
            if known is not None and known.identity.uuid == card.uuid:
                record.tiers, record.processes = known.tiers, known.processes
        record.lost = card.lost
        self._records[card.card] = record
        self._unconfirmed.discard(card.card)

    def answered(self, answer: Values, now_s: float, wall_s: float) -> None:
        """Take one card's answer to a read."""
        record = self._records.get(answer.card)
        if record is None:
            return
        owner = record.owner
        self._xids[owner] = derive.xid_history(self._xids.get(owner, derive.XidHistory()), answer.xids, wall_s)
        record.lost = answer.lost
        if answer.lost:
            record.forget_values()
            return
        values, dropped = believable(answer.values)
        for key in dropped:
            self.dropped[key] = self.dropped.get(key, 0) + 1
        if answer.refused:
            return
        for tier in answer.tiers:
            record.tiers[tier] = _Timed(
                now_s, {key: value for key, value in values.items() if BY_KEY[key].tier == tier}
            )
        if "fast" in answer.tiers:
            record.processes = _processes(answer)
            fast = record.tiers["fast"].values
            self._throttle[owner] = derive.throttle_time(self._throttle.get(owner), fast, now_s)

    def lose(self, index: int, error: str) -> None:
        """Mark a card as not answering; its values vanish, its identity stays."""
        record = self._records.setdefault(index, _unknown(index))
        record.lost = error
        record.forget_values()

    def forget_values(self, indices: Collection[int]) -> None:
        """Let the values of these cards vanish."""
        for index in indices:
            if index in self._records:
                self._records[index].forget_values()

    def indices(self, uuids: Collection[str]) -> set[int]:
        """Return the indices of those of ``uuids`` that are known."""
        return {index for index, record in self._records.items() if record.identity.uuid in uuids}

    def uuid(self, index: int) -> str:
        """Return the UUID of a card; empty where it is not known."""
        record = self._records.get(index)
        return record.identity.uuid if record else ""

    def lost(self, index: int) -> str:
        """Return why a card does not answer; empty where it does or is not known."""
        record = self._records.get(index)
        return record.lost if record else ""

    def all_in(self, uuids: Collection[str]) -> bool:
        """Return whether there are cards and all of them are among ``uuids``."""
        return bool(self._records) and all(record.identity.uuid in uuids for record in self._records.values())

    def cards(self, now_s: float, hung_s: Mapping[int, float]) -> tuple[Card, ...]:
        """Return all cards in the order of their index, with the values that are still fresh."""
        return tuple(self.card(index, now_s, hung_s.get(index, 0.0)) for index in sorted(self._records))

    def card(self, index: int, now_s: float, hung_s: float = 0.0) -> Card:
        """Return one known card."""
        record = self._records[index]
        values: dict[str, float] = {}
        for tier in record.tiers:
            if record.fresh(tier, now_s):
                values |= record.tiers[tier].values
        processes = None
        if record.fresh("fast", now_s):
            processes = record.processes
            values |= self._derived(record, values)
        return Card(record.identity, values, processes, record.lost, hung_s)

    def _derived(self, record: _Record, values: Mapping[str, float]) -> dict[str, float]:
        derived = derive.throttle_values(self._throttle[record.owner], values)
        if record.events:
            derived |= derive.xid_values(self._xids[record.owner])
        if record.processes is not None:
            derived |= derive.process_values(tuple(process.memory_bytes for process in record.processes))
        return {key: value for key, value in derived.items() if key not in self._off}


def _unknown(index: int) -> _Record:
    return _Record(CardIdentity(index, ""), events=False)


def _identity(card: CardFound, driver: str) -> CardIdentity:
    return CardIdentity(
        index=card.card,
        uuid=card.uuid,
        name=card.name,
        serial=card.serial,
        pci_bus_id=card.pci_bus_id,
        vbios=card.vbios,
        driver=driver,
        compute_capability=card.compute_capability,
    )


def _processes(answer: Values) -> tuple[GpuProcess, ...] | None:
    if answer.processes is None:
        return None
    return tuple(GpuProcess(pid, kind, memory) for pid, kind, memory in answer.processes)
