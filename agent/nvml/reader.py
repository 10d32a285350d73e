"""The reader child: the only process that loads the driver's library.

Run as ``python -m agent.nvml.reader PARENT_PID``. Commands come in on standard input, messages go out on
the descriptor that was standard output; a library that prints goes to standard error instead. It ends
when its input ends, and by the kernel's hand when its parent dies while a driver call hangs.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

import pynvml

from agent.model.quantities import QUANTITIES
from agent.nvml.door import LIBRARY_NOT_FOUND, Door, RefusedError
from agent.nvml.protocol import (
    At,
    CardFound,
    Command,
    Done,
    Event,
    Failed,
    Hello,
    Read,
    Ready,
    Start,
    Take,
    decode_command,
    encode,
)
from agent.nvml.sweep import CardReader

EXIT_INIT_FAILED: Final = 3
_PR_SET_PDEATHSIG: Final = 1


class Reader:
    """Holds the cards and answers commands, one after the other, in one thread."""

    def __init__(self, door: Door, send: Callable[[Event], None]) -> None:
        self._door = door
        self._send = send
        self._cards: dict[int, CardReader] = {}
        self._off: frozenset[str] = frozenset()

    def answer(self, command: Command) -> None:
        """Carry out one command.

        Raises:
            RefusedError: the driver cannot be initialised.
        """
        if isinstance(command, Start):
            self._start(command)
        elif isinstance(command, Take):
            self._take(command.card)
        else:
            self._read(command)

    def _start(self, command: Start) -> None:
        self._off = frozenset(command.off)
        self._load(command.library)
        self._door.call("InitWithFlags", 0)
        count = int(self._door.call("DeviceGetCount"))
        self._send(
            Hello(
                count=count,
                driver=self._text("SystemGetDriverVersion"),
                nvml=self._text("SystemGetNVMLVersion"),
            )
        )
        for index in range(count):
            if index not in command.skip:
                self._take(index)
        self._send(Ready())

    def _load(self, library: str) -> None:
        if library:
            try:
                self._door.nvml.nvmlLib = ctypes.CDLL(library)
            except OSError as error:
                sys.stderr.write(f"{error}\n")
                raise RefusedError(LIBRARY_NOT_FOUND, library) from None

    def _take(self, index: int) -> None:
        self._send(At(index))
        handle = self._door.attempt("DeviceGetHandleByIndex", index)
        if isinstance(handle, RefusedError):
            self._send(CardFound(card=index, lost=handle.name))
            return
        card = CardReader(self._door, handle, [row for row in QUANTITIES if row.key not in self._off])
        self._cards[index] = card
        self._send(
            CardFound(
                card=index,
                uuid=self._text("DeviceGetUUID", handle),
                name=self._text("DeviceGetName", handle),
                serial=self._text("DeviceGetSerial", handle),
                pci_bus_id=self._bus_id(handle),
                vbios=self._text("DeviceGetVbiosVersion", handle),
                compute_capability=self._dotted("DeviceGetCudaComputeCapability", handle),
                events=card.events,
            )
        )

    def _read(self, command: Read) -> None:
        wanted = self._cards if command.card is None else [command.card]
        for index in wanted:
            card = self._cards.get(index)
            if card is not None:
                at = At(index)
                self._send(card.read(command.id, index, command.tiers, lambda at=at: self._send(at)))  # type: ignore[misc]
        self._send(Done(command.id))

    def _text(self, function: str, *args: object) -> str:
        answer = self._door.attempt(function, *args)
        return "" if isinstance(answer, RefusedError) else str(answer)

    def _dotted(self, function: str, *args: object) -> str:
        answer = self._door.attempt(function, *args)
        return "" if isinstance(answer, RefusedError) else ".".join(str(part) for part in answer)

    def _bus_id(self, handle: object) -> str:
        """Return the PCI bus id as sysfs writes it: NVML pads the domain to eight digits."""
        info = self._door.attempt("DeviceGetPciInfo_v3", handle)
        if isinstance(info, RefusedError):
            return ""
        return f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"


def _own_output() -> int:
    """Keep the pipe for messages alone: what else is printed goes to standard error."""
    output = os.dup(1)
    os.dup2(2, 1)
    return output


def _die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies, even inside a hung driver call."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise SystemExit(0)


def _settle_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def main(parent: int) -> int:
    """Answer commands until standard input ends; return the exit status."""
    output = _own_output()
    _settle_signals()
    _die_with(parent)

    def send(event: Event) -> None:
        line = encode(event)
        while line:
            line = line[os.write(output, line) :]

    reader = Reader(Door(pynvml), send)
    try:
        for line in sys.stdin.buffer:
            reader.answer(decode_command(line))
    except RefusedError as error:
        send(Failed(error.name))
        return EXIT_INIT_FAILED
    except BrokenPipeError:
        return 0
    return 0


if __name__ == "__main__":
    # Leave at once: finalisers of the binding would call into a driver that may hang.
    os._exit(main(int(sys.argv[1])))
