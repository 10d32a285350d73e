"""The agent's side of the reader child: asks it each tick, replaces it when it hangs, never waits for long."""

import threading
from collections.abc import Callable, Collection
from typing import Final

import structlog

from agent.clock import Clock
from agent.config.settings import NvmlSettings
from agent.model.snapshot import Card, NvmlHealth
from agent.model.vocabulary import TIER_PERIOD_S
from agent.nvml import advice
from agent.nvml.absence import Absences
from agent.nvml.backoff import Backoff
from agent.nvml.children import Children, ReaderGoneError, Tap
from agent.nvml.health import HealthLog
from agent.nvml.process import Child, ReaderProcess
from agent.nvml.protocol import CardFound, Command, Done, Event, Failed, Hello, ProtocolError, Ready, Values
from agent.nvml.session import Session
from agent.nvml.source import GpuReading
from agent.nvml.store import STALE_PERIODS, CardStore

LONGEST_BURST_S: Final = 0.25
GRACE_S: Final = STALE_PERIODS * TIER_PERIOD_S["fast"]
"""How long a reader may be replaced before the driver counts as down."""
_AWAY_S: Final = 1.0
"""The agent was stopped itself where it did not look for this long beyond the read deadline."""
_QUIET: Final = (advice.PAUSED, advice.DISABLED)
_BLAMELESS: Final = ("signal 1", "signal 2", "signal 9", "signal 15")
"""Ends of a child that come from outside and say nothing about the card it was reading."""

_log = structlog.get_logger("nvml")


class ReaderClient:
    """Reads all cards through one child process; see ``CardSource`` for the contract of each method."""

    def __init__(
        self,
        settings: NvmlSettings,
        clock: Clock,
        spawn: Callable[[], Child] = ReaderProcess,
        tap: Tap | None = None,
    ) -> None:
        """Take settings, clock, how a child is started, and what sees every line it says."""
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._children = Children(spawn, tap)
        self._session: Session | None = None
        self._store = CardStore(settings.off)
        self._absences = Absences()
        self._backoff = Backoff()
        self._health = HealthLog()
        self._paused: frozenset[str] = frozenset()
        self._fault = advice.STARTING if settings.enabled else advice.DISABLED
        """Why there is no reader, or what its last one ended with; empty while all is well."""
        self._sweep_wanted = False
        self._last_good_s = float("-inf")
        self._last_look_s = self._start_due_s = clock.monotonic_s()
        self._hung_since_s: float | None = None

    def begin_tick(self) -> None:
        """Ask for what is due; return at once, also while an earlier ask is unanswered."""
        self._sweep_wanted = True
        if self._lock.acquire(blocking=False):  # else a burst has the reader, and end_tick asks
            try:
                self._listen(0.0)
                self._advance()
            finally:
                self._lock.release()

    def end_tick(self, until_monotonic_s: float) -> GpuReading:
        """Wait for the answer, at most until then; return the freshest reading in either case."""
        with self._lock:
            self._listen(0.0)
            self._advance()
            while self._answer_is_near():
                now_s = self._clock.monotonic_s()
                if now_s >= until_monotonic_s:
                    break
                self._listen(self._wait_s(until_monotonic_s - now_s, now_s))
                self._advance()
            return self._reading()

    def burst(self, uuid: str, timeout_s: float) -> Card | None:
        """Read the fast values of one card now; None where no answer came within 0.25 s or ``timeout_s``."""
        until_s = self._clock.monotonic_s() + min(timeout_s, LONGEST_BURST_S)
        with self._lock:
            known = self._store.indices({uuid} - self._paused).difference(self._absences.out())
            index = next(iter(known), None)
            session = self._session
            now_s = self._clock.monotonic_s()
            if index is None or session is None or not session.ready or session.owes_burst:
                return None
            self._send(session.ask_burst(index, now_s))
            answered = self._await_burst(session, until_s)
            return self._store.card(index, self._clock.monotonic_s()) if answered else None

    def _await_burst(self, session: Session, until_s: float) -> bool:
        while self._session is session and session.owes_burst:
            left_s = until_s - self._clock.monotonic_s()
            if left_s <= 0:
                return False
            self._listen(left_s)
        return self._session is session

    def pause(self, uuids: Collection[str]) -> None:
        """Let go of these cards; of the driver itself where all cards are named."""
        with self._lock:
            self._paused |= frozenset(uuids)
            self._store.forget_values(self._store.indices(self._paused))
            self._renew()

    def resume(self, uuids: Collection[str]) -> None:
        """Take these cards up again."""
        with self._lock:
            self._paused -= frozenset(uuids)
            self._renew()

    def close(self, timeout_s: float) -> None:
        """End the child; return within ``timeout_s`` even where it cannot be killed."""
        if self._lock.acquire(timeout=timeout_s):
            try:
                self._session = None
                self._fault = advice.DISABLED
                self._children.close(timeout_s, self._clock.monotonic_s())
            finally:
                self._lock.release()

    # What is due, without waiting.

    def _advance(self) -> None:
        now_s = self._clock.monotonic_s()
        self._children.bury(now_s)
        session = self._session
        if session is not None and session.waiting and now_s >= session.deadline_s(self._settings):
            self._hung(session, now_s)
        if self._session is None:
            self._start(now_s)
        elif self._session.ready:
            self._ask(self._session, now_s)

    def _start(self, now_s: float) -> None:
        if self._fault in (advice.DISABLED, advice.PAUSED) or now_s < self._start_due_s:
            return
        if not self._children.may_start(now_s):
            return
        session = Session({*self._absences.out(), *self._store.indices(self._paused)}, now_s)
        try:
            self._children.start()
        except OSError as error:
            _log.warning("reader_not_started", error=str(error))
            self._fail(advice.CANNOT_START, "cannot_start", now_s)
            return
        self._session = session
        self._send(session.start(self._settings))

    def _ask(self, session: Session, now_s: float) -> None:
        if self._sweep_wanted and session.sweep is None and session.retrying is None:
            self._sweep_wanted = False
            self._health.asked()
            self._send(session.ask_sweep(now_s))
            return
        card = self._absences.due(now_s, self._store.indices(self._paused))
        if card is not None and not session.waiting:
            self._send(session.ask_take(card, now_s))

    def _send(self, command: Command) -> None:
        self._children.send(command)  # where it does not go out, the child is ending and that is seen on its output

    # What the child says.

    def _listen(self, timeout_s: float) -> None:
        """Wait for messages, at most ``timeout_s``, and take them in."""
        session = self._session
        away_s = self._clock.monotonic_s() - self._last_look_s
        if session is not None and away_s > _AWAY_S + self._settings.read_deadline_s:
            session.forgive(away_s)
            self._last_good_s += away_s
        try:
            events = self._children.receive(timeout_s)
        except ReaderGoneError as error:
            self._crashed(error.ending)
            return
        except ProtocolError as error:
            _log.warning("reader_answer_unreadable", error=str(error))
            self._fail(advice.BAD_ANSWER, "bad_answer", self._clock.monotonic_s())
            return
        finally:
            self._last_look_s = self._clock.monotonic_s()
        for event in events:
            if session is not None and self._session is session:
                self._take_in(session, event, self._last_look_s)

    def _take_in(self, session: Session, event: Event, now_s: float) -> None:
        swept = isinstance(event, Done) and event.id == session.sweep
        session.note(event, now_s)
        if isinstance(event, Hello):
            self._store.begin(event, session.skipped)
        elif isinstance(event, CardFound):
            self._found(session, event, now_s)
        elif isinstance(event, Values):
            self._answered(event, now_s)
        elif isinstance(event, Ready):
            self._settled(session, now_s)
        elif swept:
            self._swept(session, now_s)
        elif isinstance(event, Failed):
            self._fail(event.error, "init_failed", now_s)

    def _found(self, session: Session, card: CardFound, now_s: float) -> None:
        was_lost = self._store.lost(card.card)
        self._store.found(card)
        if card.lost and not session.ready:
            session.unopened[card.card] = was_lost
        elif card.lost:
            self._not_opened(card.card, was_lost, now_s)
        elif self._absences.back(card.card, now_s):
            _log.info("gpu_back", gpu=card.card, uuid=card.uuid, after=was_lost)

    def _not_opened(self, index: int, was_lost: str, now_s: float) -> None:
        error = self._store.lost(index)
        self._absences.leave_out(index, error, now_s, now_s)
        self._tell_lost(index, error, was_lost)

    def _tell_lost(self, index: int, error: str, was_lost: str) -> None:
        if error != was_lost:
            self._health.failed("gpu_lost")
            likely = advice.advice(error)
            _log.warning("gpu_lost", gpu=index, uuid=self._store.uuid(index), error=error, likely_cause=likely)

    def _answered(self, answer: Values, now_s: float) -> None:
        was_lost = self._store.lost(answer.card)
        self._store.answered(answer, now_s, self._clock.wall_s())
        self._health.failed("call_failed", sum(answer.failed.values()))
        uuid = self._store.uuid(answer.card)
        for code in answer.xids:
            _log.warning("gpu_xid", gpu=answer.card, uuid=uuid, xid=code)
        if answer.lost:
            self._tell_lost(answer.card, answer.lost, was_lost)
        elif was_lost:
            _log.info("gpu_back", gpu=answer.card, uuid=uuid, after=was_lost)

    def _settled(self, session: Session, now_s: float) -> None:
        self._store.settle()
        errors = [self._store.lost(index) for index in session.unopened]
        if session.count == 0:
            self._fail(advice.NO_GPU, "init_failed", now_s)
            return
        if session.none_opened and not set(errors) & set(advice.ONE_CARDS):
            self._fail(errors[0], "init_failed", now_s)
            return
        for index, was_lost in session.unopened.items():
            self._not_opened(index, was_lost, now_s)
        if self._store.indices(self._paused) - session.skipped:
            self._renew()

    def _swept(self, session: Session, now_s: float) -> None:
        if session.all_refused:
            self._fail(session.refused[0], "init_failed", now_s)
            return
        self._fault = ""
        self._hung_since_s = None
        self._last_good_s = now_s
        self._health.swept(now_s - session.swept_s, self._clock.wall_s())
        if session.healthy(now_s):
            self._backoff.reset()

    # How a child ends.

    def _hung(self, session: Session, now_s: float) -> None:
        silent_s = now_s - session.silent_from_s
        if self._hung_since_s is None:
            self._hung_since_s = session.silent_from_s
        card = session.at if session.retrying is None else session.retrying
        _log.warning("reader_hung", silent_s=round(silent_s, 2), gpu=card)
        self._leave_out(card, advice.HUNG, session.silent_from_s, now_s)
        self._fail(advice.HUNG, "hung", now_s, at_once=card is not None)

    def _crashed(self, ending: str) -> None:
        now_s = self._clock.monotonic_s()
        card = self._session.at if self._session is not None and ending not in _BLAMELESS else None
        _log.warning("reader_crashed", ending=ending, gpu=card)
        self._leave_out(card, advice.CRASHED, now_s, now_s)
        self._fail(advice.CRASHED, "crashed", now_s, at_once=card is not None)

    def _leave_out(self, card: int | None, error: str, since_s: float, now_s: float) -> None:
        if card is not None:
            self._absences.leave_out(card, error, since_s, now_s)
            self._store.lose(card, error)
            _log.warning("gpu_left_out", gpu=card, uuid=self._store.uuid(card), error=error)

    def _fail(self, fault: str, reason: str, now_s: float, *, at_once: bool = False) -> None:
        """End the child; start another at once where that is safe, else after the back-off."""
        healthy = self._session is not None and self._session.healthy(now_s)
        self._health.failed(reason)
        self._end(now_s)
        self._fault = fault
        self._start_due_s = now_s if at_once or healthy else now_s + self._backoff.next_s()

    def _renew(self) -> None:
        """Replace the child by one that leaves out the cards now paused; by none where all are."""
        now_s = self._clock.monotonic_s()
        self._end(now_s)
        all_paused = self._store.all_in(self._paused)
        if self._fault != advice.DISABLED:
            self._fault = advice.PAUSED if all_paused else advice.STARTING
            self._start_due_s = now_s

    def _end(self, now_s: float) -> None:
        self._children.end(now_s)
        self._session = None
        self._sweep_wanted = True

    # What the tick gets.

    def _answer_is_near(self) -> bool:
        """Return whether waiting may bring an answer: one is owed, or a child is about to be started."""
        return self._session is not None and self._session.waiting

    def _wait_s(self, left_s: float, now_s: float) -> float:
        if self._session is None:
            return 0.0
        return max(0.0, min(left_s, self._session.deadline_s(self._settings) - now_s))

    def _reading(self) -> GpuReading:
        now_s = self._clock.monotonic_s()
        error = self._error(now_s)
        served = not error or error in _QUIET
        self._health.tell(error, self._store.driver.driver)
        return GpuReading(
            cards=self._store.cards(now_s, self._absences.hung_s(now_s)) if served else (),
            nvml=NvmlHealth(
                up=not error,
                error=error,
                advice=advice.advice(error),
                driver=self._store.driver.driver,
                nvml=self._store.driver.nvml,
                restarts=self._health.restarts,
                stuck_readers=self._children.stuck(now_s),
                hung_s=self._hung_s(now_s),
                dropped=dict(self._store.dropped),
            ),
            health=self._health.collector(),
        )

    def _error(self, now_s: float) -> str:
        """Return what is wrong; while a good reader is replaced that is nothing yet."""
        if self._fault in _QUIET:
            return self._fault
        if now_s - self._last_good_s <= GRACE_S:
            return ""
        return self._fault or advice.HUNG

    def _hung_s(self, now_s: float) -> float:
        since_s = self._hung_since_s
        if since_s is None and self._session is not None and self._session.waiting:
            since_s = self._session.silent_from_s
        return 0.0 if since_s is None else now_s - since_s
