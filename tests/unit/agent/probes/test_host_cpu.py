"""How busy the host is with other work than the probe's own."""

from pathlib import Path

import pytest

from agent.host.cpu import TICKS_PER_S
from agent.host.files import Tree
from agent.probes.host_cpu import HostUse, others_share, read_host_use

PID = 42


def at(root: Path, *, user_s: float, idle_s: float, own_s: float | None) -> HostUse | None:
    """Return what is read where the host has spent so much time by now, ``own_s`` of it by the child."""
    ticks = [round(value_s * TICKS_PER_S) for value_s in (user_s, 0.0, 0.0, idle_s, 1.0)]
    (root / "stat").write_text(f"cpu  {' '.join(map(str, ticks))} 0 0 0 0 0\ncpu0 0 0 0 0 0\n")
    (root / str(PID)).mkdir(exist_ok=True)
    own = root / str(PID) / "stat"
    own.unlink(missing_ok=True)
    if own_s is not None:
        spent = round(own_s * TICKS_PER_S)
        own.write_text(f"{PID} (py) thon) S 1 {PID} {PID} 0 -1 0 0 0 0 0 {spent} 0 0 0 30 10 1 0\n")
    return read_host_use(PID, Tree(str(root)))


def test_the_probes_own_work_is_not_counted(tmp_path: Path) -> None:
    """Of 4 s of CPU time others worked 1, the child 2, and 1 was idle: a quarter; waiting for a disk is idle."""
    uses = [at(tmp_path, user_s=10.0, idle_s=5.0, own_s=1.0), at(tmp_path, user_s=13.0, idle_s=6.0, own_s=3.0)]
    assert uses == [HostUse(9.0, 16.0), HostUse(10.0, 20.0)]
    assert others_share([use for use in uses if use]) == pytest.approx(0.25)


def test_what_the_kernel_does_not_say_is_unknown(tmp_path: Path) -> None:
    """A child that is gone, a /proc without the file."""
    assert at(tmp_path, user_s=1.0, idle_s=1.0, own_s=None) is None
    assert read_host_use(PID, Tree(str(tmp_path / "absent"))) is None


@pytest.mark.parametrize(
    ("uses", "share"),
    [
        ([], None),
        ([HostUse(1.0, 2.0)], None),
        ([HostUse(1.0, 2.0), HostUse(1.0, 2.0)], None),
        ([HostUse(1.0, 2.0), HostUse(0.9, 3.0)], 0.0),
        ([HostUse(1.0, 2.0), HostUse(9.0, 4.0)], 1.0),
    ],
)
def test_a_share_is_one(uses: list[HostUse], share: float | None) -> None:
    """Without time in between there is none; rounding of clocks never leaves 0 to 1."""
    assert others_share(uses) == share
