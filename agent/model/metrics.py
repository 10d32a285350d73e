"""Samples and what they are samples of, as collectors hand them on."""

import msgspec

from agent.model.vocabulary import MetricKind


class Metric(msgspec.Struct, frozen=True):
    """One metric family: full name in Prometheus base units, help, kind and label names."""

    name: str
    help: str
    kind: MetricKind
    labels: tuple[str, ...] = ()


class Sample(msgspec.Struct, frozen=True):
    """One value of a metric; ``labels`` are the label values in the order of ``Metric.labels``."""

    name: str
    value: float
    labels: tuple[str, ...] = ()
