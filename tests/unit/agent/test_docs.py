"""The generated pages say what the code says, and the repository holds them as generated."""

from pathlib import Path

import pytest

from agent.docs import PAGES, metrics_page, write
from agent.host.collect import HOST_METRICS
from agent.model.quantities import QUANTITIES

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", PAGES)
def test_page_in_the_repository_is_current(name: str) -> None:
    """A change of a table comes with its page: `make docs` writes it."""
    assert (ROOT / name).read_text(encoding="utf-8") == PAGES[name]()


def test_every_quantity_and_host_metric_is_described() -> None:
    """Nothing is served that the page does not know."""
    page = metrics_page()
    missing = [row.key for row in QUANTITIES if f"| `{row.key}` |" not in page or f"### `{row.metric}`" not in page]
    missing += [metric.name for metric in HOST_METRICS if f"| `{metric.name}` |" not in page]
    assert missing == []


def test_write_makes_every_page(tmp_path: Path) -> None:
    """One call regenerates all."""
    write(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == set(PAGES)
