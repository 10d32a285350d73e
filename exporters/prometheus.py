"""The metrics page: one snapshot in, one page in the format asked for out."""

import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from prometheus_client.core import Metric as Family

from agent.model.metrics import Metric
from agent.model.probe import ProbeRecord
from agent.model.snapshot import Snapshot
from exporters import families
from exporters.exposition import Block, Encoder, Format, page
from exporters.probe_families import probes

_ABOUT_THE_AGENT: Final[tuple[families.Section, ...]] = (
    families.node,
    families.loop,
    families.health,
    families.nvml,
)
_READINGS: Final[tuple[families.Section, ...]] = (
    families.cards,
    families.allocations,
    families.verdicts,
    families.quantities,
)


def no_families() -> Iterable[Family]:
    """Return nothing: what a page adds that stands alone."""
    return ()


class MetricsPage:
    """Turns snapshots into pages; one thread at a time."""

    def __init__(
        self,
        *,
        version: str,
        definitions: Iterable[Metric] = (),
        own: Callable[[], Iterable[Family]] = no_families,
    ) -> None:
        """Take the agent's version, the metrics of the host and of the probe schedule, and further families."""
        self._version = version
        self._definitions = {metric.name: metric for metric in definitions}
        self._own = own
        self._encoder = Encoder()
        self._probes: tuple[tuple[ProbeRecord, ...], tuple[Block, ...]] = ((), ())
        self._written: tuple[Snapshot, bool, tuple[Block, ...]] | None = None

    def render(self, snapshot: Snapshot, form: Format = "text", *, fresh: bool = True) -> bytes:
        """Return the page; of a snapshot that is not ``fresh``, only what is about the agent itself.

        What both formats share is made once for a snapshot, and what the probes found once for their records.
        """
        if self._written is None or self._written[0] is not snapshot or self._written[1] != fresh:
            self._written = (snapshot, fresh, self._encoder.without_repeats(self._blocks(snapshot, fresh=fresh)))
        return page(self._written[2], form)

    def _blocks(self, snapshot: Snapshot, *, fresh: bool) -> Iterator[Block]:
        write = self._encoder.write
        yield from write(self._families(snapshot, fresh=fresh))
        if fresh:
            yield from self._probe_blocks(snapshot)
        yield from write(self._left_out())

    def _probe_blocks(self, snapshot: Snapshot) -> tuple[Block, ...]:
        """Return half of a large page, which changes with the hour and not with the second."""
        records, blocks = self._probes
        if records != snapshot.probes:
            blocks = self._encoder.write(self._guarded("probes", probes, snapshot))
            self._probes = (snapshot.probes, blocks)
        return blocks

    def _families(self, snapshot: Snapshot, *, fresh: bool) -> Iterator[Family]:
        yield from self._guarded("about the agent", self._about, snapshot)
        for section in _ABOUT_THE_AGENT + (_READINGS if fresh else ()):
            yield from self._guarded(section.__name__, section, snapshot)
        if fresh:
            yield from self._guarded("host", self._host, snapshot)
            yield from self._guarded("probe schedule", self._schedule, snapshot)
        yield from self._guarded("own", self._further, snapshot)

    def _left_out(self) -> Iterator[Family]:
        left_out = families.counter("heatsoak_exporter_left_out_total", "What could not be put on a page, by reason.")
        for reason, count in self._encoder.dropped.items():
            families.single(left_out, count, {"reason": reason})
        yield left_out

    def _guarded(self, name: str, section: families.Section, snapshot: Snapshot) -> Iterator[Family]:
        try:
            yield from section(snapshot)
        except Exception as error:  # noqa: BLE001 - one bad section never costs the page
            self._encoder.drop("family", name, error=repr(error))

    def _about(self, _: Snapshot) -> Iterator[Family]:
        labels = {"version": self._version, "python": platform.python_version()}
        yield families.info("heatsoak_build_info", "Version of the agent and of its Python.", labels)

    def _host(self, snapshot: Snapshot) -> Iterator[Family]:
        return families.defined(snapshot.host, self._definitions)

    def _schedule(self, snapshot: Snapshot) -> Iterator[Family]:
        return families.defined(snapshot.probe_counts, self._definitions)

    def _further(self, _: Snapshot) -> Iterator[Family]:
        yield from self._own()
