"""What is looked at while a probe child runs: its cards, many times a second, and whether to go on."""

from collections.abc import Callable, Sequence
from typing import Final

from agent.clock import Clock
from agent.host.files import Tree
from agent.model.snapshot import Card
from agent.nvml.source import CardSource
from agent.probes.attribution import CardSample
from agent.probes.host_cpu import HostUse, read_host_use
from agent.probes.job import Job

BURST_TIMEOUT_S: Final = 0.25
READER_DOWN_S: Final = 3.0
"""After this long without a reading of every card the run ends: nobody would see a tenant come."""

HOST_PERIOD_S: Final = 0.2
"""How often the host's CPU time is read: on a host of hundreds of CPUs that costs more than a card does."""
_PROC: Final = Tree("/proc")


class CardWatch:
    """Samples the cards of one run and says when the run must end."""

    def __init__(
        self,
        job: Job,
        source: CardSource | None,
        clock: Clock,
        tenants: Callable[[Card], Sequence[int]],
        abort: Callable[[], str],
        proc: Tree = _PROC,
    ) -> None:
        """Take the job; ``tenants`` tells which processes on a card are not ours, ``abort`` why to end."""
        self._job = job
        self._source = source
        self._clock = clock
        self._tenants = tenants
        self._abort = abort
        self._proc = proc
        self._last_s = clock.monotonic_s()
        self._host_due_s = self._last_s
        self.samples: list[CardSample] = []
        self.pid = 0
        """The child's process id, 0 before its start."""
        self.reason = ""
        """Why the run had to end, empty while it need not."""

    def ask(self, pid: int) -> str:
        """Return the reason why the child ``pid`` must end now, a word of PROBE_REASONS; empty for none."""
        self.pid = pid
        self.reason = self._abort() or self._look()
        return self.reason

    def _look(self) -> str:
        """Take one sample of the first card, where the run is on any, and see that all are there and ours."""
        if self._job.card is None or self._source is None:
            return ""
        bursts = [self._source.burst(card.identity.uuid, BURST_TIMEOUT_S) for card in self._job.cards]
        cards = [card for card in bursts if card is not None]
        now_s = self._clock.monotonic_s()
        if len(cards) < len(bursts):
            return "reader_down" if now_s - self._last_s > READER_DOWN_S else ""
        self._last_s = now_s
        tenant = any(self._tenants(card) for card in cards)
        self.samples.append(CardSample(now_s, cards[0], tenant, self._host_use(now_s)))
        if any(card.lost for card in cards):
            return "gpu_lost"
        return "tenant_arrived" if tenant and self._job.yield_to_tenants else ""

    def _host_use(self, now_s: float) -> HostUse | None:
        """Return the host's CPU time where it is due to be read."""
        if now_s < self._host_due_s:
            return None
        self._host_due_s = now_s + HOST_PERIOD_S
        return read_host_use(self.pid, self._proc)
