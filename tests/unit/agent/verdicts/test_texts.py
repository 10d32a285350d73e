"""What verdicts tell people to do can be copied, and points at pages that are there."""

import ast
import re
from pathlib import Path

from agent.model.next_action import ACTIONS, ON_CPU

ROOT = Path(__file__).parents[4]
COMMAND = re.compile(r"(?<!`)\bheatsoak (?:doctor|inventory|pause|probe|reference|resume)\b")
PAGE = re.compile(r"\((docs/[a-z-]+\.md), ([^)]+)\)")


def texts() -> list[str]:
    """Return every text in the code of the verdicts that is no docstring, and the actions."""
    found = [*ACTIONS.values(), *ON_CPU.values()]
    for path in sorted((ROOT / "agent" / "verdicts").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        bodies = [node.body for node in ast.walk(tree) if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))]
        said = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
        found += [
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said
        ]
    return found


def test_commands_stand_in_backticks() -> None:
    """The page sets them as code, which is not broken over two lines."""
    assert [text for text in texts() if COMMAND.search(text)] == []


def test_pages_and_sections_that_are_named_are_there() -> None:
    """A reader finds what an action points at."""
    named = {(match[1], match[2]) for text in texts() for match in PAGE.finditer(text)}
    assert named
    assert [(page, section) for page, section in named if f"## {section}\n" not in (ROOT / page).read_text()] == []
