"""Whether process ids are the host's."""

from pathlib import Path

import pytest

from agent.host.files import Tree
from agent.host.pid_namespace import host_pids_visible


@pytest.mark.parametrize(("link", "visible"), [("pid:[4026531836]", True), ("pid:[4026532291]", False), ("", False)])
def test_only_the_kernels_first_namespace_is_the_hosts(tmp_path: Path, link: str, *, visible: bool) -> None:
    """A container has another one; where the link cannot be read, nothing is trusted."""
    (tmp_path / "self/ns").mkdir(parents=True)
    if link:
        (tmp_path / "self/ns/pid").symlink_to(link)
    assert host_pids_visible(Tree(str(tmp_path))) is visible
