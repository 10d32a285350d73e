"""Whether process ids are the host's."""

from pathlib import Path

import pytest

from agent.host.files import Tree
from agent.host.pid_namespace import host_pids_visible, is_confined


@pytest.mark.parametrize(("link", "visible"), [("pid:[4026531836]", True), ("pid:[4026532291]", False), ("", False)])
def test_only_the_kernels_first_namespace_is_the_hosts(tmp_path: Path, link: str, *, visible: bool) -> None:
    """A container has another one; where the link cannot be read, nothing is trusted."""
    (tmp_path / "self/ns").mkdir(parents=True)
    if link:
        (tmp_path / "self/ns/pid").symlink_to(link)
    assert host_pids_visible(Tree(str(tmp_path))) is visible


@pytest.mark.parametrize(
    ("link", "ids", "confined"),
    [
        ("pid:[4026531836]", "NSpid:\t7", False),
        ("pid:[4026532291]", "NSpid:\t7", True),
        ("pid:[4026532291]", "NSpid:\t4711\t7", False),
        ("", "NSpid:\t7", False),
        ("pid:[4026532291]", "Name:\tx", False),
    ],
)
def test_a_containers_own_proc_is_told_from_the_hosts_mounted_into_it(
    tmp_path: Path, link: str, ids: str, *, confined: bool
) -> None:
    """In the host's /proc a contained process has an id for each namespace around it; unknown is not confined."""
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/status").write_text(f"Pid:\t7\n{ids}\n")
    if link:
        (tmp_path / "self/ns/pid").symlink_to(link)
    assert is_confined(Tree(str(tmp_path))) is confined
