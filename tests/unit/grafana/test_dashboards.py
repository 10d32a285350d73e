"""The dashboards: what is committed is what the generator makes, and every panel explains itself."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from grafana.build import BOARDS, ROOT, files
from grafana.model import Dashboard, Panel, dashboard_json
from tests.support.names import names_in, rules, scraped_names

BURN_IN = frozenset({"heatsoak_burnin_progress_ratio", "heatsoak_burnin_phase", "heatsoak_burnin_remaining_seconds"})
PANELS = [(board, panel) for board in BOARDS for row in board.rows for panel in row.panels]
EVERY = pytest.mark.parametrize(("board", "panel"), PANELS, ids=[f"{b.uid}-{p.title}" for b, p in PANELS])


@pytest.mark.parametrize("name", list(files()))
def test_what_is_committed_is_what_is_made(name: str) -> None:
    """Run `python -m grafana.build` after a change."""
    assert (ROOT / name).read_text(encoding="utf-8") == files()[name]


def test_no_dashboard_is_left_over() -> None:
    """Each file in grafana/dashboards belongs to a board."""
    found = {path.stem for path in (ROOT / "grafana" / "dashboards").glob("*.json")}
    assert found == {board.uid for board in BOARDS}


@EVERY
def test_a_panel_explains_itself_and_its_emptiness(board: Dashboard, panel: Panel) -> None:
    """A description, and a sentence for the card that lacks the reading."""
    assert panel.description.endswith("."), board.uid
    assert panel.empty, board.uid
    assert panel.queries, board.uid


@EVERY
def test_a_panel_reads_what_agents_serve_and_rules_record(board: Dashboard, panel: Panel) -> None:
    """No name is made up; the burn-in's come with the burn-in."""
    recorded = {rule["record"] for rule in rules("heatsoak-recording.yaml")}
    for query in panel.queries:
        read = names_in(query.expr)
        assert read, f"{board.uid}: {query.expr}"
        unknown = read - scraped_names() - recorded - BURN_IN - {"up"}
        assert not unknown, f"{board.uid}, {panel.title}: {sorted(unknown)}"


@EVERY
def test_a_legend_names_node_and_card(board: Dashboard, panel: Panel) -> None:
    """A line about a card says which; the card's own history need not."""
    if board.uid == "heatsoak-card" or panel.kind == "table":
        return
    for query in panel.queries:
        if "{{gpu}}" in query.legend:
            assert "{{node}}" in query.legend


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: str(board.uid))
def test_panels_have_their_own_place_and_number(board: Dashboard) -> None:
    """Nothing overlaps, nothing leaves the grid."""
    panels = dashboard_json(board)["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
    for one, other in combinations((panel["gridPos"] for panel in panels), 2):
        apart = (
            one["x"] + one["w"] <= other["x"]
            or other["x"] + other["w"] <= one["x"]
            or one["y"] + one["h"] <= other["y"]
            or other["y"] + other["h"] <= one["y"]
        )
        assert apart


@pytest.mark.parametrize("path", sorted((ROOT / "grafana" / "dashboards").glob("*.json")), ids=lambda path: path.stem)
def test_links_and_variables_lead_somewhere(path: Path) -> None:
    """A data link goes to one of the boards and sets variables that it has; an expression uses its own board's."""
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    choices = {board.uid: {one.name for one in board.variables} for board in BOARDS}
    own = choices[document["uid"]]
    for panel in document["panels"]:
        for link in panel.get("fieldConfig", {}).get("defaults", {}).get("links", []):
            uid, _, query = link["url"].removeprefix("/d/").partition("?")
            wanted = {
                part.partition("=")[0].removeprefix("var-") for part in query.split("&") if part.startswith("var-")
            }
            assert wanted <= choices[uid], link["url"]
        for target in panel.get("targets", []):
            used = {word.strip('"') for word in target["expr"].split('=~"$')[1:]}
            assert {word.partition('"')[0] for word in used} <= own
