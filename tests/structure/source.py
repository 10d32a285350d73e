"""The product's modules as syntax trees, and what the rules of style count in them."""

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("agent", "exporters", "workloads")
COMPOSITION_ROOT = "heatsoak.py"
_SILENT_TOKENS = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Function:
    """A function or method; ``public`` says whether it can be reached by public names alone."""

    node: FunctionNode
    qualified: str
    public: bool

    @property
    def lines(self) -> int:
        """How many lines it has from ``def`` to its end, its docstring left out."""
        end = self.node.end_lineno or self.node.lineno
        return end - self.node.lineno + 1 - _docstring_lines(self.node)

    @property
    def docstring(self) -> str:
        """Its docstring, empty where it has none."""
        return ast.get_docstring(self.node) or ""

    def own(self) -> Iterator[ast.AST]:
        """Yield the nodes of its body, those of functions and classes inside it left out."""
        yield from _walk_own(self.node.body)


@dataclass(frozen=True)
class Module:
    """One file of the product."""

    path: Path

    @property
    def name(self) -> str:
        """Its path below the repository's root."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        """What it holds."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree."""
        return ast.parse(self.text, filename=self.name)

    @cached_property
    def code_lines(self) -> int:
        """How many lines hold code: neither blank, comment nor docstring."""
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.text).readline):
            if token.type not in _SILENT_TOKENS:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            if isinstance(node, Documented) and ast.get_docstring(node) is not None:
                first = node.body[0]
                lines.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
        return len(lines)

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """All its functions and methods, nested ones too."""
        return tuple(_functions(self.tree, "", public=True))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        """All its classes."""
        return tuple(node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef))

    def imports(self) -> Iterator[tuple[str, int]]:
        """Yield each imported module's full name and the line; names imported from it are appended."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, node.lineno) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                yield from ((f"{node.module or ''}.{alias.name}", node.lineno) for alias in node.names)

    def at(self, node: ast.expr | ast.stmt | ast.excepthandler, what: str) -> str:
        """Return an offence with its place."""
        return f"{self.name}:{node.lineno}: {what}"


def product_modules() -> tuple[Module, ...]:
    """Return every module of the product."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    if (ROOT / COMPOSITION_ROOT).exists():
        paths.append(ROOT / COMPOSITION_ROOT)
    return tuple(Module(path) for path in paths)


def our_errors(modules: Iterable[Module]) -> set[str]:
    """Return the names of all classes that derive from HeatsoakError, and its own."""
    bases = {node.name: {_last_name(base) for base in node.bases} for module in modules for node in module.classes}
    ours = {"HeatsoakError"}
    while more := {name for name, parents in bases.items() if parents & ours} - ours:
        ours |= more
    return ours


def raised(function: Function) -> Iterator[tuple[ast.Raise, str, ast.Call | None]]:
    """Yield each error a function itself raises: statement, class name, and the call that makes it (or None)."""
    for node in function.own():
        if isinstance(node, ast.Raise) and node.exc is not None:
            call = node.exc if isinstance(node.exc, ast.Call) else None
            name = _last_name(call.func if call else node.exc)
            if name[:1].isupper():
                yield node, name, call


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _docstring_lines(node: FunctionNode) -> int:
    if ast.get_docstring(node) is None:
        return 0
    first = node.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


def _functions(parent: ast.AST, prefix: str, *, public: bool) -> Iterator[Function]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, FunctionNode):
            here = public and not node.name.startswith("_")
            yield Function(node, f"{prefix}{node.name}", here)
            yield from _functions(node, f"{prefix}{node.name}.", public=False)
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.", public=public and not node.name.startswith("_"))
        else:
            yield from _functions(node, prefix, public=public)


def _walk_own(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield node
            yield from _walk_own(ast.iter_child_nodes(node))
