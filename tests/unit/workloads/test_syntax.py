"""The child runs under interpreters older than the agent's."""

import ast
from pathlib import Path

import pytest

import workloads

FILES = sorted(Path(workloads.__file__).parent.glob("*.py"))
ALLOWED = {"tensorflow", "numpy", "workloads"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_is_python_3_8(path: Path) -> None:
    """Each module parses as Python 3.8 and evaluates no newer annotation at run time."""
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 8))
    annotated = any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))
    postponed = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    assert postponed or not annotated


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_imports_only_tensorflow_numpy_and_the_standard_library(path: Path) -> None:
    """A package file run with -I finds nothing else; Keras is named by the article's way of training alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    tops = {name.partition(".")[0] for name in names}
    assert "keras" not in tops
    named = any(isinstance(node, ast.Attribute) and node.attr == "keras" for node in ast.walk(tree))
    assert named == (path.name == "article.py")
    assert tops - ALLOWED <= STANDARD


STANDARD = {
    "__future__", "concurrent", "contextlib", "ctypes", "dataclasses", "functools", "gc", "importlib", "json", "math",
    "os", "pathlib", "platform", "re", "resource", "shutil", "sys", "tempfile", "time", "typing",
}  # fmt: skip
