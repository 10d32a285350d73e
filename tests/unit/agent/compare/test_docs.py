"""The commands shown in docs/compare.md print what the page says."""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from heatsoak import cli

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "compare.md"
_BLOCK = re.compile(r"```console\n\$ heatsoak (?P<command>.*)\n(?P<output>(?:.*\n)*?)```")


def blocks() -> list[tuple[str, str]]:
    """Return each command shown, and what the page says it prints."""
    return [(found["command"], found["output"]) for found in _BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]


@pytest.fixture
def in_root() -> Iterator[None]:
    """Work in the repository's root, as the page does."""
    before = Path.cwd()
    os.chdir(ROOT)
    yield
    os.chdir(before)


def printed(command: str) -> str:
    """Return what a command prints, ends of lines trimmed."""
    done = CliRunner().invoke(cli, shlex.split(command))
    assert done.exit_code == 0, done.output
    return "".join(f"{line.rstrip()}\n" for line in done.output.rstrip().splitlines())


@pytest.mark.usefixtures("in_root")
@pytest.mark.parametrize(("command", "output"), blocks(), ids=[command for command, _ in blocks()])
def test_a_command_prints_what_the_page_shows(command: str, output: str) -> None:
    """`python -m tests.unit.agent.compare.test_docs` writes the page anew; the difference is for review."""
    assert printed(command) == output


def test_the_page_shows_the_worked_example() -> None:
    """It is what the ranking by price is judged by."""
    (output,) = [output for command, output in blocks() if command == "compare --prices docs/examples/prices.toml"]
    rows = re.findall(r"(\d) │ (RTX 3090|V100|A100 PCIe) +│ +(1,541\.7|828\.6|775\.0) ", output)
    assert rows == [("1", "RTX 3090", "1,541.7"), ("2", "V100", "828.6"), ("3", "A100 PCIe", "775.0")]


def test_the_stored_runs_are_compared_with_their_warning() -> None:
    """TensorFlow 2.9 and 2.21 on the same CPU: the difference is told before any rank."""
    (output,) = [output for command, output in blocks() if "tensorflow-2.9.json" in command]
    before, _, ranks = output.partition("Rank by throughput")
    assert re.search(r"TensorFlow: 2\.9\.0 \(.+\) against 2\.21\.0", before)
    assert "resnet50 fp32 graph 32 px" in ranks
    assert "The same hardware twice" in ranks


def rewrite() -> None:
    """Put what the commands print now into the page."""
    os.chdir(ROOT)
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(
        _BLOCK.sub(lambda at: f"```console\n$ heatsoak {at['command']}\n{printed(at['command'])}```", text),
        encoding="utf-8",
    )


if __name__ == "__main__":
    rewrite()
