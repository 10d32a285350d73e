"""The metrics page as a file."""

import errno
import os
from pathlib import Path

import pytest

from exporters.textfile import write_textfile


def test_the_page_takes_the_place_of_the_old_one(tmp_path: Path) -> None:
    """The new page is there whole and nothing else is left."""
    target = tmp_path / "heatsoak.prom"
    write_textfile(target, b"old 1\n")
    write_textfile(target, b"new 2\n")
    assert target.read_bytes() == b"new 2\n"
    assert os.listdir(tmp_path) == ["heatsoak.prom"]  # noqa: PTH208 - names are what is compared


def test_a_full_disk_leaves_the_old_page(tmp_path: Path) -> None:
    """No space: the error is told, the old page stands, no fragment is left."""
    target = tmp_path / "heatsoak.prom"
    write_textfile(target, b"old 1\n")
    fragment = tmp_path / f"heatsoak.prom.{os.getpid()}.tmp"
    fragment.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space") as caught:
        write_textfile(target, b"new 2\n")
    assert caught.value.errno == errno.ENOSPC
    assert target.read_bytes() == b"old 1\n"
    assert not fragment.is_symlink()


def test_a_missing_directory_is_told(tmp_path: Path) -> None:
    """Nothing is made that was not asked for."""
    with pytest.raises(FileNotFoundError):
        write_textfile(tmp_path / "missing" / "heatsoak.prom", b"")
