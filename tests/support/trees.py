"""Trees of files as the kernel would show them."""

from collections.abc import Mapping
from pathlib import Path

from agent.host.files import Tree


def make_tree(root: Path, files: Mapping[str, str | bytes]) -> Tree:
    """Write the files, each by its path below ``root``, and return the tree."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    root.mkdir(parents=True, exist_ok=True)
    return Tree(str(root))
