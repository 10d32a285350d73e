"""Makes the generated documents from the tables they describe: ``python -m agent.docs [DIR]``."""

import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Final

from agent.compare.published import UNITS, Row, published, range_text
from agent.config.sample import sample
from agent.host.collect import HOST_METRICS
from agent.model.metrics import Metric
from agent.model.quantities import QUANTITIES
from agent.model.quantity import Bit, Call, Fabric, Field, Gpm, LinkSum, Peak, Quantity, Source
from agent.model.vocabulary import TIER_PERIOD_S
from agent.probes.counts import METRICS as PROBE_METRICS

_ROOT: Final = Path(__file__).parents[1]
_INTRODUCTION: Final = """\
# Metrics

Made from the code by `make docs`; do not edit. Units are Prometheus base units; a ratio is 0 to 1. What is not
known has no series: never 0, NaN or an older value. Series about a card carry `gpu` (its NVML index) and `uuid`.

## Cards

Each key may stand in `nvml.off`, which switches that reading off. Sources are tried in order until the card
supports one. A value outside its range is dropped and counted in `heatsoak_nvml_values_dropped_total`.
"""


_PUBLISHED: Final = """\
# Published figures

Made from `agent/data/published.toml` by `make docs`; do not edit. They come from other programs, networks' details,
inputs and versions than heatsoak's: `heatsoak compare --against published` sets them beside measured ones and never
ranks them together. Batches are those of one card.

A figure is here only if it was read at its source. Not found anywhere, and so not here: training throughput of the T4,
the A10G and the RTX 3060, memory figures of tf_cnn_benchmarks on a T4, and peaks of the A10G.
"""


def metrics_page() -> str:
    """Return docs/METRICS.md."""
    parts = [_INTRODUCTION, _tiers(), *_cards(), _table("Host", HOST_METRICS), _table("Probe schedule", PROBE_METRICS)]
    return "\n".join(parts)


def _tiers() -> str:
    rows = "\n".join(f"| {tier} | {period_s:g} s |" for tier, period_s in TIER_PERIOD_S.items())
    return f"| tier | read every |\n|---|---|\n{rows}\n\nNothing older than three periods of its tier is served.\n"


def _cards() -> Iterable[str]:
    for metric, group in groupby(sorted(QUANTITIES, key=lambda row: row.metric), key=lambda row: row.metric):
        rows = list(group)
        yield f"### `{metric}`\n\n{rows[0].kind.capitalize()}. {rows[0].help}\n"
        yield "| key | labels | tier | range | sources |\n|---|---|---|---|---|"
        yield "\n".join(map(_row, rows)) + "\n"


def _row(row: Quantity) -> str:
    labels = ", ".join(f'{name}="{value}"' for name, value in row.labels)
    sources = "; ".join(map(_source, row.sources))
    return f"| `{row.key}` | {labels} | {row.tier} | {_range(row)} | {sources} |"


def _range(row: Quantity) -> str:
    high = row.at_most if row.at_most else f"{row.high:g}"
    return f"{row.low:g} … {high}"


def _source(source: Source) -> str:
    if isinstance(source, Call):
        picked = source.attribute or ("" if source.item is None else f"[{source.item}]")
        return f"`nvml{source.function}({', '.join(map(str, source.args))})` {picked}".rstrip()
    if isinstance(source, Bit):
        return f"`nvml{source.function}` & `{source.constant}`"
    if isinstance(source, Field):
        return f"`{source.name}`"
    if isinstance(source, LinkSum):
        return f"`{source.name}` summed over the links"
    if isinstance(source, Peak):
        return f"peak of `{source.buffer}`"
    if isinstance(source, Gpm):
        return f"`{source.metric}`"
    if isinstance(source, Fabric):
        return f"`nvmlDeviceGetGpuFabricInfoV` {source.attribute}"
    return f"derived: {source.rule}"


def _table(title: str, metrics: Iterable[Metric]) -> str:
    rows = "\n".join(
        f"| `{metric.name}` | {metric.kind} | {', '.join(metric.labels)} | {metric.help} |"
        for metric in sorted(metrics, key=lambda metric: metric.name)
    )
    return f"## {title}\n\n| metric | kind | labels | meaning |\n|---|---|---|---|\n{rows}\n"


def published_page() -> str:
    """Return docs/published.md."""
    table = published()
    parts = [_PUBLISHED]
    for quantity, unit in UNITS.items():
        parts.append(f"## {quantity.capitalize()}, {unit}\n")
        parts.append("| card | what | precision | batch | published | source | note |\n|---|---|---|---|---|---|---|")
        parts += [_published_row(row) for row in table.rows if row.quantity == quantity]
        parts.append("")
    parts.append("## Sources\n")
    for key, source in table.sources.items():
        parts.append(f"* **{key}**: {source.title}, {source.url}, read {source.read}. {source.method}. {source.caveat}")
    return "\n".join(parts) + "\n"


def _published_row(row: Row) -> str:
    values = range_text(row.low, row.high, UNITS[row.quantity])
    cells = (row.card, row.name, ", ".join(row.precisions), row.batch, values, row.source, row.note)
    return f"| {' | '.join(cells)} |"


PAGES: Final[Mapping[str, Callable[[], str]]] = MappingProxyType(
    {
        "docs/METRICS.md": metrics_page,
        "docs/published.md": published_page,
        "deploy/heatsoak.sample.toml": sample,
    }
)
"""Every generated document by its path in the repository."""


def write(folder: Path) -> None:
    """Write all generated documents below ``folder``."""
    for name, page in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else _ROOT)
