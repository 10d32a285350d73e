"""Telling our own processes, a desktop at rest and a tenant apart."""

import os
import subprocess
from pathlib import Path
from typing import Literal

import pytest

from agent.host.files import Tree
from agent.model.snapshot import GpuProcess
from agent.probes.tenants import pids_are_the_hosts, tenants
from tests.unit.agent.probes.cards import compute


def test_foreign_processes_are_tenants() -> None:
    """Whatever is not in a session of ours is somebody's."""
    found = tenants([compute(os.getpid()), compute(1)], sessions=(), desktop_at_rest=True)
    assert [process.pid for process in found] == [os.getpid(), 1]


def test_a_child_of_our_probe_is_ours() -> None:
    """A process that a probe started belongs to the probe's session."""
    command = ["/bin/sh", "-c", "sleep 60 & echo $!; wait"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as leader:
        try:
            assert leader.stdout is not None
            grandchild = int(leader.stdout.readline())
            found = tenants(
                [compute(leader.pid), compute(grandchild), compute(1)], sessions=(leader.pid,), desktop_at_rest=True
            )
        finally:
            os.killpg(leader.pid, 9)
    assert [process.pid for process in found] == [1]


def test_a_probe_that_just_ended_is_still_ours() -> None:
    """The driver may list a process for a moment after its end."""
    assert tenants([compute(2**22)], sessions=(2**22,), desktop_at_rest=True) == ()


def test_desktop_counts_only_while_it_works() -> None:
    """A graphics-only process is a tenant as soon as the card is at work for it."""
    desktop = GpuProcess(1, "graphics", 1)
    assert tenants([desktop], sessions=(), desktop_at_rest=True) == ()
    assert tenants([desktop], sessions=(), desktop_at_rest=False) == (desktop,)


@pytest.mark.parametrize(("setting", "expected"), [("yes", True), ("no", False)])
def test_operator_may_say_whether_pids_count(setting: Literal["yes", "no"], expected: bool, tmp_path: Path) -> None:
    """A setting beats what can be found out."""
    assert pids_are_the_hosts(setting, Tree(str(tmp_path))) is expected


@pytest.mark.parametrize(("target", "expected"), [("pid:[4026531836]", True), ("pid:[4026532567]", False)])
def test_own_pid_namespace_means_pids_cannot_be_trusted(target: str, expected: bool, tmp_path: Path) -> None:
    """Only the first namespace of the host shows the host's ids."""
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/pid").symlink_to(target)
    assert pids_are_the_hosts("auto", Tree(str(tmp_path))) is expected


def test_unknown_namespace_is_not_trusted(tmp_path: Path) -> None:
    """Where the kernel does not say, nothing is assumed."""
    assert pids_are_the_hosts("auto", Tree(str(tmp_path))) is False
