"""What a comparison of results says, free of any form of print: rankings, cautions, differences, standings."""

from typing import Literal

import msgspec

Basis = Literal["common", "own_best", "quoted"]
"""What a ranking compares: one configuration that all have, each card's own best, or published figures."""


class Compared(msgspec.Struct, frozen=True):
    """One card of one result."""

    label: str
    card: str
    """The card's name, or the processor's."""
    device: str
    tensorflow: str
    driver: str
    cards: int
    """How many cards the result's machine has."""
    price: float | None = None


class Caution(msgspec.Struct, frozen=True):
    """Something to know before figures are held against each other."""

    about: tuple[str, ...]
    """Labels of all that it concerns."""
    topic: str
    detail: str
    """Where it concerns several, whose value is which."""
    effect: str
    """What it may do to the figures."""

    @property
    def line(self) -> str:
        """The whole in one line."""
        alone = f"{self.about[0]}: " if len(self.about) == 1 else ""
        return f"{alone}{self.topic}: {self.detail}; {self.effect}"


class Ranked(msgspec.Struct, frozen=True):
    """One place of a ranking."""

    rank: int
    """1 is the best; equal values share a rank."""
    label: str
    configuration: str
    value: float
    marks: tuple[str, ...] = ()
    """What disturbed the measurement, as ``contended``."""


class Ranking(msgspec.Struct, frozen=True):
    """One order of all that have a value in one metric."""

    metric: str
    unit: str
    higher_is_better: bool
    basis: Basis
    subject: str
    """What was measured: the network and what else all rows share."""
    rows: tuple[Ranked, ...]
    left_out: tuple[str, ...] = ()
    """Who has no value, and why."""
    is_own_best: bool = False
    """Whether the common configuration is each card's own best too."""


class Headlines(msgspec.Struct, frozen=True):
    """One headline figure of every result, None where a result has none, in the order of :attr:`Comparison.results`."""

    name: str
    unit: str
    values: tuple[float | None, ...]
    repeatable: bool = False
    """Whether the figure measures the card, so that two runs on the same one must agree."""


class Figure(msgspec.Struct, frozen=True):
    """One good training measurement."""

    label: str
    network: str
    dtype: str
    mode: str
    size: int
    batch: int
    variant: str
    replicas: int
    accumulate: int
    method_version: int
    memory_limit_bytes: int
    images_per_second: float
    peak_bytes: float | None
    watts: float | None
    joules_per_image: float | None
    marks: tuple[str, ...] = ()


class Spread(msgspec.Struct, frozen=True):
    """One training step spread over several cards of a result."""

    label: str
    network: str
    dtype: str
    mode: str
    batch: int
    """Images a step and card."""
    replicas: int
    images_per_second: float
    speed_up: float
    efficiency: float


class Difference(msgspec.Struct, frozen=True):
    """One headline figure of two results of the same card."""

    left: str
    right: str
    name: str
    unit: str
    left_value: float
    right_value: float
    percent: float
    """Of the right one from the left one."""
    large: bool
    """Whether it is above 1 % either way."""
    repeatable: bool
    """Whether the figure measures the card, so that it should not be large."""


class Standing(msgspec.Struct, frozen=True):
    """A measured figure beside a published one, which was made by another method."""

    label: str
    quantity: str
    """As ``resnet50`` or ``matmul``."""
    precision: str
    measured: float
    measured_at: str
    """Mode and batch of a training step, shape of a product."""
    unit: str
    card: str
    same_model: bool
    published_low: float
    published_high: float
    batch: str
    source: str
    note: str

    @property
    def times(self) -> tuple[float, float]:
        """How many times the published range the measured figure is: of its high end, of its low end."""
        return self.measured / self.published_high, self.measured / self.published_low


class Comparison(msgspec.Struct, frozen=True):
    """Everything that ``heatsoak compare`` has to say."""

    results: tuple[str, ...]
    """Labels of the results, each once."""
    cards: tuple[Compared, ...] = ()
    cautions: tuple[Caution, ...] = ()
    rankings: tuple[Ranking, ...] = ()
    notes: tuple[str, ...] = ()
    """Why something is not ranked, and what the rankings rest on."""
    headlines: tuple[Headlines, ...] = ()
    scaling: tuple[Spread, ...] = ()
    differences: tuple[Difference, ...] = ()
    standings: tuple[Standing, ...] = ()
    figures: tuple[Figure, ...] = ()
    currency: str = ""


class Picture(msgspec.Struct, frozen=True):
    """One drawn picture; its ``svg`` takes the colour of the text around it and has no background."""

    name: str
    """Fit for a file's name."""
    title: str
    svg: str

    @property
    def file(self) -> str:
        """The picture for itself: black on white."""
        return self.svg.replace("<svg ", '<svg style="background:#fff;color:#000" ', 1)
