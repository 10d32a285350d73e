"""What the pages tell people to type: each `heatsoak …` is a command that is there, with options that it knows."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from heatsoak import cli

_ROOT = Path(__file__).parents[3]
_PAGES = (
    *sorted((_ROOT / "docs").rglob("*.md")),
    _ROOT / "README.md",
    _ROOT / "deploy/prometheus/heatsoak-alerts.yaml",
)
_BLOCK = re.compile(r"^```\w*\n(.*?)^```|^( {4}[^\n]*)$", re.MULTILINE | re.DOTALL)
_IN_BLOCK = re.compile(r"^ *(heatsoak .+)$", re.MULTILINE)
_IN_TEXT = re.compile(r"`(?:sudo )?(heatsoak [^`\n]+)`|[Rr]un (heatsoak [a-z -]+?)(?: on| in|,|\.)")
_LATER = frozenset({"compare", "estimate", "burnin"})
"""Commands that pages may name before they are built."""


def _calls(text: str) -> Iterator[str]:
    """Yield each call, of `a && b` every part, and of `show|export` each choice."""
    blocks = "\n".join("".join(groups) for groups in _BLOCK.findall(text))
    for call in (*_IN_BLOCK.findall(blocks), *("".join(groups) for groups in _IN_TEXT.findall(text))):
        for part in re.split(r" && |; ", re.sub(r" +#.*", "", call)):
            if part.startswith("heatsoak "):
                choice = re.search(r"\S+\|\S+", part)
                words = choice.group().split("|") if choice else [""]
                yield from (part.replace(choice.group(), word) if choice else part for word in words)


_EVERY = sorted({(path.name, call) for path in _PAGES for call in _calls(path.read_text(encoding="utf-8"))})


def test_there_are_commands_in_most_runbooks() -> None:
    """The search finds what people would type."""
    assert len({page for page, _ in _EVERY}) > 15
    assert ("CardLost.md", "heatsoak pause --gpu GPU") in _EVERY


@pytest.mark.parametrize(("page", "call"), _EVERY)
def test_a_command_in_a_page_can_be_typed(page: str, call: str) -> None:
    """With --help behind it, it prints its help instead of a complaint."""
    words = shlex.split(call)[1:]
    told = CliRunner().invoke(cli, [*words, "--help"])
    assert told.exit_code == 0 or words[0] in _LATER, f"{page}: {call}: {told.output}"
