"""The library is built once, also by several processes at a time."""

import subprocess
import sys
from pathlib import Path

from tests.fakenvml.build import LIBRARY, build

_ROOT = Path(__file__).parents[3]
_MAIN = "from tests.fakenvml.build import main; main()"


def test_a_second_build_finds_the_first(tmp_path: Path) -> None:
    """The same sources give the same folder, and the file stays the one it was."""
    first = build(tmp_path)
    inode = (first / LIBRARY).stat().st_ino

    second = build(tmp_path)

    assert second == first
    assert (second / LIBRARY).stat().st_ino == inode


def test_builders_at_the_same_time_share_one_result(tmp_path: Path) -> None:
    """All of them end well and name the same folder, which holds nothing half-made."""
    command = [sys.executable, "-m", "tests.fakenvml.build", str(tmp_path)]
    builders = [subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True) for _ in range(3)]

    told = {builder.communicate(timeout=100)[0].strip() for builder in builders}

    assert [builder.returncode for builder in builders] == [0, 0, 0]
    assert len(told) == 1
    assert [path.name for path in Path(told.pop()).iterdir()] == [LIBRARY]


def test_a_missing_header_is_one_clear_line(tmp_path: Path) -> None:
    """An interpreter that sees no package says what to install, without a traceback."""
    command = [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(_ROOT)!r}); {_MAIN}"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "fakenvml: nvml.h: not found; pip install nvidia-nvml-dev brings it\n"
