"""The one door to /proc and /sys."""

from pathlib import Path

import pytest

from agent.host import files
from agent.host.files import Tree
from tests.support.trees import make_tree


def test_a_file_is_read_whole_and_undecodable_bytes_are_marked(tmp_path: Path) -> None:
    """Larger than one read, with a byte that is not UTF-8."""
    tree = make_tree(tmp_path, {"a": b"x" * 200_000 + b"\xff"})
    assert tree.read("a") == "x" * 200_000 + "\ufffd"


def test_reading_stops_at_the_limit(tmp_path: Path) -> None:
    """An endless file costs no more than the limit."""
    assert len(Tree("/dev").read("zero", 100_000)) == 100_000
    assert len(Tree("/dev").read("zero")) == files.READ_LIMIT_BYTES
    assert make_tree(tmp_path, {"a": "abc"}).read("a", 2) == "ab"


def test_what_is_not_there_is_told_apart_from_what_is_empty(tmp_path: Path) -> None:
    """Missing raises, or is None where asked for so."""
    tree = make_tree(tmp_path, {"empty": ""})
    assert tree.read("empty") == tree.read_or_none("empty") == ""
    assert tree.read_or_none("missing") is None
    assert tree.inode("missing") is None
    assert not tree.has_directory("empty")
    for ask in (tree.read, tree.names, tree.link):
        with pytest.raises(OSError, match="No such file"):
            ask("missing")


def test_a_directory_is_found_by_its_inode(tmp_path: Path) -> None:
    """Below, at the place itself, or not at all; files do not disturb."""
    tree = make_tree(tmp_path, {"m/a/b/file": "", "m/file": ""})
    assert tree.find_directory("m", (tmp_path / "m/a/b").stat().st_ino) == "/a/b"
    assert tree.find_directory("m", (tmp_path / "m").stat().st_ino) == ""
    assert tree.find_directory("m", 1) is None
    assert tree.find_directory("missing", 1) is None
