"""A reader child that plays a driver in one's hand: it answers, hangs, dies and lies as a test tells it to."""

from collections.abc import Mapping

import msgspec

from agent.nvml.protocol import (
    At,
    CardFound,
    Done,
    Event,
    Failed,
    Hello,
    Read,
    Ready,
    Start,
    Take,
    Values,
    decode_command,
    encode,
)
from tests.support.clock import FakeClock

FAST: Mapping[str, float | None] = {"utilization_ratio": 50, "temperature_celsius": 60, "power_watts": 300_000}
SLOW: Mapping[str, float | None] = {"energy_joules_total": 5000}


def uuid_of(index: int) -> str:
    """Return the UUID of card ``index``."""
    return f"GPU-{index}"


class FakeDriver:
    """What the machine's driver is like; all children see the same."""

    def __init__(self, clock: FakeClock, cards: int = 2) -> None:
        """Begin with a driver in good health."""
        self.clock = clock
        self.cards = cards
        self.init_error = ""
        self.hang_in_init = False
        self.hung: set[int] = set()
        self.crashing: set[int] = set()
        self.lost: dict[int, str] = {}
        self.unopenable: dict[int, str] = {}
        self.refused = ""
        self.xids: dict[int, tuple[int, ...]] = {}
        self.fast: dict[str, float | None] = dict(FAST)
        self.noise: list[bytes] = []
        """What a child says instead of an answer to a read; each is said once."""
        self.unkillable = False
        self.children: list[FakeChild] = []

    def spawn(self) -> "FakeChild":
        """Start a child."""
        self.children.append(FakeChild(self))
        return self.children[-1]

    @property
    def alive(self) -> int:
        """Return how many children have not ended."""
        return sum(not child.dead for child in self.children)


class FakeChild:
    """One reader child; waiting for it passes the fake clock's time."""

    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver
        self._said: list[bytes] = []
        self.commands: list[Start | Take | Read] = []
        self.held: set[int] = set()
        self.silent = False
        self.dead = False
        self._ending = ""
        self.killed = False
        self.closed = False

    def send(self, line: bytes) -> bool:
        """Take a command and, where the driver lets it, answer at once."""
        command = decode_command(line)
        self.commands.append(command)
        if not (self.silent or self.dead):
            self._answer(command)
        return not self.dead

    def receive(self, timeout_s: float) -> bytes | None:
        """Hand over what was said, one chunk; else pass the time."""
        if self._said:
            return self._said.pop(0)
        if self.dead:
            return b""
        self._driver.clock.advance(timeout_s)
        return None

    def kill(self) -> None:
        """Die, unless in a driver call that cannot be interrupted."""
        self.killed = True
        if not (self._driver.unkillable and self.silent):
            self.die("signal 9")

    def die(self, ending: str) -> None:
        """End."""
        self.dead = True
        self._ending = self._ending or ending

    def gone(self, timeout_s: float) -> bool:
        """Wait for its end."""
        if not self.dead:
            self._driver.clock.advance(timeout_s)
        return self.dead

    def ending(self) -> str:
        """Return how it ended."""
        return self._ending

    def close(self) -> None:
        """Note that this side closed its pipes."""
        self.closed = True

    def say(self, raw: bytes) -> None:
        """Put bytes on the pipe."""
        self._said.append(raw)

    def _tell(self, event: Event) -> None:
        self.say(encode(event))

    def _answer(self, command: Start | Take | Read) -> None:
        if isinstance(command, Start):
            self._start(command)
        elif isinstance(command, Take):
            self._take(command.card)
        else:
            self._read(command)

    def _start(self, command: Start) -> None:
        driver = self._driver
        if driver.init_error:
            self._tell(Failed(driver.init_error))
            self.die("exit 3")
            return
        if driver.hang_in_init:
            self.silent = True
            return
        self._tell(Hello(count=driver.cards, driver="580.1", nvml="13"))
        for index in range(driver.cards):
            if index not in command.skip and not self._take(index):
                return
        self._tell(Ready())

    def _take(self, index: int) -> bool:
        self._tell(At(index))
        if index in self._driver.hung:
            self.silent = True
            return False
        if error := self._driver.unopenable.get(index):
            self._tell(CardFound(card=index, lost=error))
            return True
        self.held.add(index)
        self._tell(CardFound(card=index, uuid=uuid_of(index), name="Card", pci_bus_id="0000:01:00.0", events=True))
        return True

    def _read(self, command: Read) -> None:
        if self._driver.noise:
            self.say(self._driver.noise.pop(0))
            return
        for index in sorted(self.held if command.card is None else self.held & {command.card}):
            self._tell(At(index))
            if index in self._driver.hung:
                self.silent = True
                return
            if index in self._driver.crashing:
                self.die("signal 11")
                return
            self._tell(self._values(command, index))
        self._tell(Done(command.id))

    def _values(self, command: Read, index: int) -> Values:
        driver = self._driver
        answer = Values(id=command.id, card=index, tiers=command.tiers, xids=driver.xids.pop(index, ()))
        if error := driver.lost.get(index):
            return msgspec.structs.replace(answer, lost=error)
        if driver.refused:
            return msgspec.structs.replace(answer, refused=driver.refused)
        values = dict(driver.fast) if "fast" in command.tiers else {}
        if "slow" in command.tiers:
            values |= SLOW
        return msgspec.structs.replace(answer, values=values, processes=[(7, "compute", 1024)], succeeded=3)
