"""Writes what is generated: `python -m grafana.build`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from grafana.burnin import BURNIN
from grafana.card import CARD_BOARD
from grafana.fleet import FLEET
from grafana.model import Dashboard, dashboard_json
from grafana.node import NODE_BOARD
from grafana.pipeline import PIPELINE
from grafana.tables import alerts_page, migration_page

ROOT: Final = Path(__file__).parent.parent
BOARDS: Final[tuple[Dashboard, ...]] = (FLEET, NODE_BOARD, BURNIN, PIPELINE, CARD_BOARD)


def files() -> Mapping[str, str]:
    """Return every generated file's text by its path below the repository's root."""
    return dict(_files())


def _files() -> Iterator[tuple[str, str]]:
    for board in BOARDS:
        text = json.dumps(dashboard_json(board), indent=2, ensure_ascii=False)
        yield f"grafana/dashboards/{board.uid}.json", text + "\n"
    yield "docs/alerts.md", alerts_page()
    yield "docs/migration.md", migration_page()


def main() -> None:
    """Write them all."""
    for name, text in files().items():
        path = ROOT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
