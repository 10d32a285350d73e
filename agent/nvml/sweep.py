"""One card as the reader child reads it: which source serves each row, and one sweep over the rows due."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from agent.model.quantities import QUANTITIES
from agent.model.quantity import Bit, Call, Derived, Fabric, Field, Gpm, LinkSum, Peak, Quantity, Source
from agent.model.vocabulary import Tier
from agent.nvml import special
from agent.nvml.door import NO_DATA, NOT_SUPPORTED, Door, RefusedError
from agent.nvml.protocol import Values

MOST_LINKS: Final = 18
_Scoped = tuple[int, int]


class CardReader:
    """Reads one card; remembers which of a row's sources this card supports."""

    def __init__(self, door: Door, handle: object, rows: Sequence[Quantity] = QUANTITIES) -> None:
        self._door = door
        self._handle = handle
        self._rows = [row for row in rows if not isinstance(row.sources[0], Derived)]
        self._choice: dict[str, int] = {}
        self._processes = special.Processes(door, handle)
        self._xids: special.XidWatch | None = None
        self._buffers: dict[str, special.SampleBuffer] = {}
        self._gpm: special.GpmSampler | None = None
        try:
            self._xids = special.XidWatch(door, handle)
        except RefusedError:
            self._xids = None

    @property
    def events(self) -> bool:
        """Whether XID events are reported for this card."""
        return self._xids is not None

    def ask_again(self) -> None:
        """Ask again for every reading that was not supported."""
        self._choice.clear()
        self._processes.ask_again()

    def read(self, ask_id: int, index: int, tiers: tuple[Tier, ...], announce: Callable[[], None]) -> Values:
        """Return what the card answers; ``announce`` is called before each tier's driver calls."""
        self._door.reset_counts()
        if "static" in tiers:
            self.ask_again()
        before = dict(self._choice)
        xids = self._xids.read() if self._xids else ()
        values: dict[str, float | None] = {}
        processes: list[special.ProcessEntry] | None = None
        lost = ""
        try:
            for tier in tiers:
                announce()
                values |= self._read_tier(tier)
            if "fast" in tiers:
                processes = self._processes.read()
        except RefusedError as error:
            lost, values = error.name, {}
        refused = "" if self._door.succeeded else self._door.last_error
        if refused:
            self._choice = before
        return Values(
            id=ask_id,
            card=index,
            tiers=tiers,
            values=values,
            processes=processes,
            xids=xids,
            lost=lost,
            succeeded=self._door.succeeded,
            failed=self._door.failed,
            refused=refused,
        )

    def _read_tier(self, tier: Tier) -> dict[str, float | None]:
        due = [
            (row, self._choice.get(row.key, 0))
            for row in self._rows
            if row.tier == tier and self._choice.get(row.key, 0) < len(row.sources)
        ]
        sweep = Sweep(self._door, self._handle, self)
        sweep.prefetch([row.sources[choice] for row, choice in due])
        values: dict[str, float | None] = {}
        for row, choice in due:
            value = self._value(sweep, row, choice)
            if value is not None:
                values[row.key] = value
        return values

    def _value(self, sweep: "Sweep", row: Quantity, choice: int) -> float | None:
        """Return the row's value from the first source that this card supports.

        Raises:
            RefusedError: the card is lost.
        """
        while choice < len(row.sources):
            try:
                return sweep.value(row.sources[choice])
            except RefusedError as error:
                if error.lost:
                    raise
                if not error.unsupported:
                    return None
            choice += 1
            self._choice[row.key] = choice
        return None

    def peak(self, buffer: str) -> float:
        """Return the largest sample in one of the driver's buffers since the previous read.

        Raises:
            RefusedError: not offered, or no sample has come since.
        """
        if buffer not in self._buffers:
            self._buffers[buffer] = special.SampleBuffer(self._door, self._handle, buffer)
        return self._buffers[buffer].peak()

    def gpm(self, metrics: Iterable[int]) -> dict[int, float | RefusedError]:
        """Return the GPM metrics since the previous read.

        Raises:
            RefusedError: the card or the driver has no GPM.
        """
        if self._gpm is None:
            self._gpm = special.GpmSampler(self._door, self._handle)
        return self._gpm.read(list(metrics))


class Sweep:
    """One pass over rows of one card: every distinct driver call is made once, its answer shared."""

    def __init__(self, door: Door, handle: object, card: CardReader) -> None:
        self._door = door
        self._handle = handle
        self._card = card
        self._answers: dict[object, Any] = {}
        self._gpm_metrics: list[int] = []
        self._readers: dict[type[Source], Callable[[Any], float]] = {
            Call: self._call,
            Bit: self._bit,
            Field: self._field,
            LinkSum: self._link_sum,
            Peak: self._peak,
            Gpm: self._gpm,
            Fabric: self._fabric,
        }

    def value(self, source: Source) -> float:
        """Return the driver's number.

        Raises:
            RefusedError: the driver gives none.
        """
        return self._readers[type(source)](source)

    def prefetch(self, sources: Iterable[Source]) -> None:
        """Ask for all field values of ``sources`` in one call, and note which GPM metrics are wanted.

        Raises:
            RefusedError: the card is lost.
        """
        fields: list[_Scoped] = []
        for source in sources:
            if isinstance(source, Field) and self._door.knows(source.name):
                fields.append((self._door.constant(source.name), source.scope))
            elif isinstance(source, LinkSum) and self._door.knows(source.name):
                fields += [(self._door.constant(source.name), link) for link in range(MOST_LINKS)]
            elif isinstance(source, Gpm) and self._door.knows(source.metric):
                self._gpm_metrics.append(self._door.constant(source.metric))
        if fields:
            self._ask_fields(list(dict.fromkeys(fields)))

    def _ask_fields(self, fields: list[_Scoped]) -> None:
        try:
            answers = self._door.call("DeviceGetFieldValues", self._handle, fields)
        except RefusedError as error:
            if error.lost:
                raise
            for scoped in fields:
                self._answers[scoped] = error
            return
        for scoped, answer in zip(fields, answers, strict=True):
            if answer.nvmlReturn:
                self._answers[scoped] = self._door.refuse(answer.nvmlReturn, "DeviceGetFieldValues")
            else:
                self._answers[scoped] = special.number(answer.valueType, answer.value)

    def _once(self, key: object, ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the getter returns
        answer = self._answers.get(key)
        if answer is None:
            try:
                answer = ask()
            except RefusedError as error:
                answer = error
            self._answers[key] = answer
        if isinstance(answer, RefusedError):
            raise answer
        return answer

    def _answer(self, function: str, args: tuple[str | int, ...] = ()) -> Any:  # noqa: ANN401 - as above
        def ask() -> Any:  # noqa: ANN401 - as above
            arguments = [self._door.constant(arg) if isinstance(arg, str) else arg for arg in args]
            return self._door.call(function, self._handle, *arguments)

        return self._once((function, args), ask)

    def _call(self, source: Call) -> float:
        answer = self._answer(source.function, source.args)
        if source.attribute:
            answer = getattr(answer, source.attribute)
        elif source.item is not None:
            answer = answer[source.item]
        return float(answer)

    def _bit(self, source: Bit) -> float:
        return float(bool(self._answer(source.function) & self._door.constant(source.constant)))

    def _field(self, source: Field) -> float:
        return self._scoped(self._door.constant(source.name), source.scope)

    def _scoped(self, field: int, scope: int) -> float:
        if (field, scope) not in self._answers:
            self._ask_fields([(field, scope)])
        answer: float | RefusedError = self._answers[field, scope]
        if isinstance(answer, RefusedError):
            raise answer
        return answer

    def _link_sum(self, source: LinkSum) -> float:
        field = self._door.constant(source.name)
        links = [(field, link) for link in range(MOST_LINKS)]
        missing = [scoped for scoped in links if scoped not in self._answers]
        if missing:
            self._ask_fields(missing)
        counted = [self._answers[scoped] for scoped in links]
        numbers: list[float] = [answer for answer in counted if not isinstance(answer, RefusedError)]
        if not numbers:
            raise counted[0]
        return sum(numbers)

    def _peak(self, source: Peak) -> float:
        peak: float = self._once(source, lambda: self._card.peak(source.buffer))
        return peak

    def _gpm(self, source: Gpm) -> float:
        metric = self._door.constant(source.metric)
        metrics: dict[int, float | RefusedError] = self._once(Gpm, lambda: self._card.gpm(self._gpm_metrics))
        answer: float | RefusedError = metrics.get(metric, RefusedError(NO_DATA, source.metric))
        if isinstance(answer, RefusedError):
            raise answer
        return answer

    def _fabric(self, source: Fabric) -> float:
        info = self._once(Fabric, lambda: special.fabric(self._door, self._handle))
        if not hasattr(info, source.attribute):
            raise RefusedError(NOT_SUPPORTED, f"fabric {source.attribute}")
        return float(getattr(info, source.attribute))
