"""The notebook in docs runs on stored results, in a real kernel, and is kept without outputs."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.bench.model import Step
from agent.bench.store import save
from agent.config.load import unknown_variables
from tests.support.results import bench_result, machine, plain_steps, training

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "docs" / "results.ipynb"
STORED = ROOT / "benchmarks" / "results" / "cpu"
_EXECUTE = """
import sys, nbclient, nbformat
source, target = sys.argv[1:]
book = nbformat.read(source, as_version=4)
nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": "."}}).execute()
nbformat.write(book, target)
"""


@pytest.fixture
def made_up(tmp_path: Path) -> Path:
    """Make a folder of two made-up results."""
    folder = tmp_path / "results"
    folder.mkdir()
    spread = Step("two", (training(1700.0, batch=64, replicas=2),))
    save(bench_result(*plain_steps(), spread), folder / "a.json")
    save(bench_result(label="made up B", on=machine(tensorflow="2.9.0")), folder / "b.json")
    return folder


def executed(tmp_path: Path, folder: Path) -> dict[str, Any]:
    """Return the notebook as it is after a run on the results in ``folder``."""
    target = tmp_path / "executed.ipynb"
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "RESULTS_DIR": str(folder), "IPYTHONDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", _EXECUTE, str(NOTEBOOK), str(target)],
        cwd=NOTEBOOK.parent, env=environ, capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    notebook: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
    return notebook


def shown(notebook: dict[str, Any], kind: str) -> Iterator[str]:
    """Yield what the cells show in one form."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            text = output.get("data", {}).get(kind, output.get("text", "") if kind == "text/plain" else "")
            yield "".join(text)


def test_the_notebook_draws_results_and_warns(tmp_path: Path, made_up: Path) -> None:
    """Every curve of two results is drawn, and what differs is said."""
    notebook = executed(tmp_path, made_up)

    assert len([svg for svg in shown(notebook, "image/svg+xml") if "<svg" in svg]) == 7
    text = "".join(shown(notebook, "text/plain"))
    assert "TensorFlow: 2.21.0 (" in text
    assert ") against 2.9.0 (" in text
    assert "resnet50 bf16 xla 224 px: best 2,222.2 images/s at batch 128" in text
    assert any("Rank by throughput" in markdown for markdown in shown(notebook, "text/markdown"))


def test_the_notebook_runs_on_the_stored_results(tmp_path: Path) -> None:
    """What the repository keeps can be looked at as it is."""
    notebook = executed(tmp_path, STORED)

    assert any("<svg" in svg for svg in shown(notebook, "image/svg+xml"))
    assert "TensorFlow: " in "".join(shown(notebook, "text/plain"))


def test_its_variable_is_not_taken_for_a_setting() -> None:
    """Whoever sets it for the notebook is not told by the agent that it is none."""
    named = re.findall(r"environ\.get\(\\\"(\w+)", NOTEBOOK.read_text(encoding="utf-8"))
    assert named
    assert unknown_variables(dict.fromkeys(named, "")) == ()


def test_the_notebook_is_kept_without_outputs() -> None:
    """A run leaves no trace in the repository."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        assert cell["metadata"] == {}
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None)
