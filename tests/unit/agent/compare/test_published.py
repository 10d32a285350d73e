"""The published table: sound, cited, and of one mind with the table of models and our own stored runs."""

import json
import re
from pathlib import Path
from statistics import median

import pytest

from agent.compare.published import Row, published, range_text
from agent.verdicts.models import models

ROOT = Path(__file__).parents[4]
ROWS = published().rows
QUANTITIES = {"training", "matmul"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.card}-{row.network or row.quantity}-{row.precisions[0]}")
def test_every_row_is_whole(row: Row) -> None:
    """It has a source, a range the right way round, and a training figure has a network and a batch."""
    assert row.source in published().sources
    assert 0 < row.low <= row.high
    assert (row.quantity == "training") == bool(row.network)
    assert (row.quantity == "training") == bool(row.batch)
    assert row.precisions


def test_every_source_is_cited_and_used() -> None:
    """Title, address, date, method and caveat are there; none is left over."""
    for source in published().sources.values():
        assert all((source.title, source.url, source.method, source.caveat))
        assert source.url.startswith("https://") or (ROOT / source.url).is_file()
    assert {row.source for row in ROWS} == set(published().sources)


def test_published_floors_of_the_models_rest_on_the_same_peaks() -> None:
    """A floor of 0.4 of a data sheet's peak agrees with the peak in this table, where both know the card."""
    peaks: dict[tuple[str, str], float] = {
        (row.driver_name, precision): row.high
        for row in ROWS
        if row.source == "data_sheets"
        for precision in row.precisions
    }
    checked = 0
    for name, model in models().items():
        for floor in model.floors:
            if floor.basis == "published" and (name, floor.dtype) in peaks:
                assert floor.value == pytest.approx(0.4 * peaks[name, floor.dtype], rel=0.01)
                checked += 1
    assert checked >= 4


def test_our_own_figures_are_those_of_the_stored_runs() -> None:
    """The H200's rows were not typed from memory."""
    stored = ROOT / "benchmarks" / "results" / "h200"
    text = (stored / "every_probe_once.json").read_text(encoding="utf-8")
    values = [float(value) for value in re.findall(r'"value": ([\d.e+]+)', text)]
    children = json.loads((stored / "twenty_fresh_children.json").read_text(encoding="utf-8"))
    values.append(median(one["result"]["value"] for one in children if one["result"]["probe"] == "matmul"))
    for row in ROWS:
        for value in (row.low, row.high) if row.source == "own" else ():
            assert any(value == pytest.approx(measured, rel=2e-3) for measured in values), (row, value)


def test_ranges_read_as_people_write_them() -> None:
    """One unit for both ends, two where they differ, one number where there is no range."""
    assert range_text(400.3, 1019.6, "images/s") == "400.3 to 1,019.6 images/s"
    assert range_text(65e12, 65e12, "flop/s") == "65 TFLOP/s"
    assert range_text(0.9e12, 1.1e12, "flop/s") == "900 GFLOP/s to 1.1 TFLOP/s"
