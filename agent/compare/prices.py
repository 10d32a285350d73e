"""What cards and energy cost: the price list that ``heatsoak compare --prices`` reads."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec

from agent.config.schema import Setting, nearest, settings_of, shown
from agent.config.source import Document, read_document
from agent.errors import ConfigError
from agent.model.text import clean_label

_Positive = Annotated[float, msgspec.Meta(ge=1e-9, le=10**15)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
HOURS_A_YEAR: Final = 365.25 * 24
_MAKER: Final = "nvidia "
_CARD: Final = "card"
"""The one key that holds tables."""


class PricedCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One card's price, and where no result file tells its throughput, what was published of it."""

    name: _Name
    """A result's label or card name, in any case and with or without ``NVIDIA``."""
    price: _Positive
    """Of one card, in the list's currency."""
    images_per_second: _Positive | None = None
    watts: _Positive | None = None
    """Power while training; read only beside ``images_per_second``, a result has its own."""
    network: str = ""
    dtype: str = ""
    batch: Annotated[int, msgspec.Meta(ge=0)] = 0
    source: str = ""

    @property
    def circumstances(self) -> str:
        """What is said of how the throughput was reached: figures rank together only where it is the same."""
        batch = f"batch {self.batch}" if self.batch else ""
        return " ".join(filter(None, (self.network, self.dtype, batch))) or "circumstances not said"


class PriceList(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One price list."""

    currency: Annotated[str, msgspec.Meta(min_length=1, max_length=8)]
    energy_price_per_kwh: _Positive | None = None
    years: _Positive | None = None
    """How long a card is used."""
    utilisation: Annotated[float, msgspec.Meta(ge=1e-9, le=1)] | None = None
    """Share of those years during which it works."""
    card: Annotated[tuple[PricedCard, ...], msgspec.Meta(min_length=1)]

    @property
    def hours_in_use(self) -> float | None:
        """How many hours a card works in its life; None where the list does not say."""
        if self.years is None or self.utilisation is None:
            return None
        return self.years * HOURS_A_YEAR * self.utilisation

    def price_of(self, *names: str) -> float | None:
        """Return the price of the first of ``names`` that the list knows, None where it knows none."""
        known = {plain_name(card.name): card.price for card in self.card}
        return next((known[plain_name(name)] for name in names if plain_name(name) in known), None)


def plain_name(name: str) -> str:
    """Return a card's name as names are compared."""
    return " ".join(name.casefold().split()).removeprefix(_MAKER)


def load_prices(path: Path) -> PriceList:
    """Return the price list in a file.

    Raises:
        ConfigError: It cannot be read or is no price list; one line for each fault, with its place.
    """
    try:
        document = read_document(path)
    except FileNotFoundError as error:
        raise ConfigError([f"{clean_label(str(path), 500)}: no such file; give a price list in TOML"]) from error
    faults = list(_wrong_keys(document)) or [f"{document.path}: {fault}" for fault in _faults(_built(document))]
    if faults:
        raise ConfigError(faults)
    return _built(document)


def _built(document: Document) -> PriceList:
    return msgspec.convert(document.content, type=PriceList)


def _wrong_keys(document: Document) -> Iterator[str]:
    """Yield what is wrong with one key or another, which must be right before anything else can be."""
    cards = document.content.get(_CARD)
    if not isinstance(cards, list) or not cards or not all(isinstance(card, dict) for card in cards):
        yield f"{document.place(_CARD)}: card: must be at least one table, [[card]], not {shown(cards)}"
        cards = []
    yield from _wrong_in(document, document.content, PriceList, "")
    for number, card in enumerate(cards):
        yield from _wrong_in(document, card, PricedCard, f"card.{number}")


def _wrong_in(
    document: Document, table: Mapping[str, object], struct: type[msgspec.Struct], section: str
) -> Iterator[str]:
    known = {setting.key: setting for setting in settings_of(struct)}
    for key, value in table.items():
        where = f"{document.place(f'{section}.{key}'.removeprefix('.'))}: {clean_label(key)}"
        if key not in known:
            yield f"{where}: unknown, with the value {shown(value)}; {nearest(key, known)}"
        elif key != _CARD:
            yield from (f"{where}: {fault}" for fault in _wrong_value(known[key], value))
    for key, setting in known.items():
        if setting.default is msgspec.NODEFAULT and key not in table and key != _CARD:
            yield f"{document.place(section)}: {key}: missing; must be {setting.expected}"


def _wrong_value(setting: Setting, value: object) -> Sequence[str]:
    try:
        setting.convert(value)
    except ConfigError as error:
        return error.faults
    return ()


def _faults(prices: PriceList) -> Iterator[str]:
    """Yield where right values do not go together."""
    if (prices.years is None) != (prices.utilisation is None):
        missing = "utilisation" if prices.utilisation is None else "years"
        yield f"{missing} is missing; years and utilisation must be given together"
    texts = (prices.currency, *(text for one in prices.card for text in (one.name, one.circumstances, one.source)))
    yield from (
        f"{clean_label(text)!r} holds what cannot be printed; leave it out" for text in texts if not text.isprintable()
    )
    seen: set[str] = set()
    for card in prices.card:
        where = f"card {clean_label(card.name)!r}"
        if plain_name(card.name) in seen:
            yield f"{where}: named twice; a card has one price"
        if card.watts is not None and card.images_per_second is None:
            yield f"{where}: watts is {card.watts:g} without images_per_second; a result's own power is read"
        seen.add(plain_name(card.name))
