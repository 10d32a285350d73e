"""What agent and reader child say to each other: one JSON object a line, both ways.

The child announces each card before it touches it (``at``), so that a hang names its card.
Values are the driver's own numbers; scale and range are applied by the agent.
"""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from agent.errors import HeatsoakError
from agent.model.vocabulary import Tier

MAX_LINE_BYTES: Final = 1 << 20
Index = Annotated[int, Meta(ge=0, le=4095)]


class ProtocolError(HeatsoakError):
    """A line that is not one of the documented messages."""


class Start(msgspec.Struct, frozen=True, tag_field="command", tag="start"):
    """First command: initialise the driver and take up every card whose index is not in ``skip``."""

    skip: tuple[Index, ...] = ()
    off: tuple[str, ...] = ()
    """Keys of quantities that are not read."""
    library: str = ""


class Take(msgspec.Struct, frozen=True, tag_field="command", tag="take"):
    """Take up one more card; answered by ``card``."""

    card: Index


class Read(msgspec.Struct, frozen=True, tag_field="command", tag="read"):
    """Read these tiers of one card, or of all; answered by ``values`` a card, then ``done``."""

    id: int
    tiers: tuple[Tier, ...]
    card: Index | None = None


Command = Start | Take | Read


class Hello(msgspec.Struct, frozen=True, tag_field="event", tag="hello"):
    """The driver is initialised; ``count`` cards are there."""

    count: Index
    driver: str = ""
    nvml: str = ""


class At(msgspec.Struct, frozen=True, tag_field="event", tag="at"):
    """The next driver calls are about this card."""

    card: Index


class CardFound(msgspec.Struct, frozen=True, tag_field="event", tag="card"):
    """Who a card is; ``lost`` names the error where it cannot be opened."""

    card: Index
    uuid: str = ""
    name: str = ""
    serial: str = ""
    pci_bus_id: str = ""
    vbios: str = ""
    compute_capability: str = ""
    events: bool = False
    """Whether XID events are reported for it."""
    lost: str = ""


class Ready(msgspec.Struct, frozen=True, tag_field="event", tag="ready"):
    """All cards are taken up; reads may come."""


class Values(msgspec.Struct, frozen=True, tag_field="event", tag="values"):
    """One card's answer. A row without a value has no key; null is a number JSON cannot carry."""

    id: int
    card: Index
    tiers: tuple[Tier, ...]
    values: dict[str, float | None] = {}
    processes: list[tuple[int, str, int | None]] | None = None
    """Process id, kind and bytes of device memory; null where the driver does not say."""
    xids: tuple[int, ...] = ()
    lost: str = ""
    succeeded: int = 0
    """Driver calls that gave an answer."""
    failed: dict[str, int] = {}
    """Driver calls that failed, by error name; readings that are not supported left out."""
    refused: str = ""
    """The error name, where not one call succeeded."""


class Done(msgspec.Struct, frozen=True, tag_field="event", tag="done"):
    """The read is answered in full."""

    id: int


class Failed(msgspec.Struct, frozen=True, tag_field="event", tag="failed"):
    """The driver cannot be initialised; the child ends after this line."""

    error: str


Event = Hello | At | CardFound | Ready | Values | Done | Failed

_event_decoder: Final = msgspec.json.Decoder(Event)
_command_decoder: Final = msgspec.json.Decoder(Command)
_encoder: Final = msgspec.json.Encoder()


def encode(message: Command | Event) -> bytes:
    """Return ``message`` as one line, newline included."""
    return _encoder.encode(message) + b"\n"


def decode_event(line: bytes) -> Event:
    """Return the child's message in ``line``.

    Raises:
        ProtocolError: the line is not a documented message.
    """
    try:
        return _event_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"reader line {line[:80]!r}: {error}; expected one JSON message") from None


def decode_command(line: bytes) -> Command:
    """Return the agent's command in ``line``.

    Raises:
        ProtocolError: the line is not a documented command.
    """
    try:
        return _command_decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"reader command {line[:80]!r}: {error}; expected one JSON command") from None


class LineBuffer:
    """Cuts a byte stream into lines; holds at most ``limit_bytes`` of an unfinished one."""

    def __init__(self, limit_bytes: int = MAX_LINE_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that ``chunk`` completes, newlines left out.

        Raises:
            ProtocolError: a line is longer than the limit.
        """
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        longest = max(map(len, [*lines, self._rest]))
        if longest > self._limit_bytes:
            raise ProtocolError(f"reader line of {longest} bytes; expected at most {self._limit_bytes}")
        return lines
