"""The rules of style that a machine can check, over the whole product."""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure.source import ROOT, Documented, Function, Module, our_errors, product_modules, raised

MOST_MODULE_LINES = 420
MOST_FUNCTION_LINES = 60
MOST_FUNCTION_LINES_P90 = 30
MOST_BROAD_EXCEPTS_PER_1000_LINES = 1.5
LEAST_SHARE_OF_ERRORS_WITH_VALUE = 0.9
UNITS = (
    "s", "seconds", "ns", "us", "bytes", "mib", "celsius", "watts", "joules", "hertz", "ratio", "share", "percent",
    "flops", "lanes", "cores", "threads", "replicas", "periods", "per_second", "per_kelvin",
)  # fmt: skip
"""Endings of the names of numbers: what they count in."""
DIMENSIONLESS = {
    # counts and positions
    "attempts", "batch", "clock_steps", "gpu", "index", "inner", "item", "limit", "overruns", "repeats", "request",
    "restarts", "runs", "samples", "scope", "seed", "size", "stuck_readers", "ticks",
    # versions and identifiers
    "method_version", "pid", "version",
    # numbers whose unit another field names, and factors between units
    "divisor", "high", "low", "mad", "median", "scale", "value",
    # steps of a standard
    "pcie_generation_max", "pcie_width_max",
}  # fmt: skip
_LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical"}
_CLOCK_READERS = {"now", "utcnow", "today"}
_NO_ERRORS = {"SystemExit"}
"""Raised to end the program, not because something is wrong."""
_BROAD = {"Exception", "BaseException"}


@pytest.fixture(scope="module")
def modules() -> tuple[Module, ...]:
    """All modules of the product."""
    return product_modules()


def test_no_module_is_too_long(modules: tuple[Module, ...]) -> None:
    """A module reads top to bottom in one sitting."""
    assert [f"{m.name}: {m.code_lines} lines" for m in modules if m.code_lines > MOST_MODULE_LINES] == []


def test_no_function_is_too_long(modules: tuple[Module, ...]) -> None:
    """A function fits a screen."""
    long = [
        m.at(f.node, f"{f.qualified}: {f.lines} lines")
        for m in modules
        for f in m.functions
        if f.lines > MOST_FUNCTION_LINES
    ]
    assert long == []


def test_functions_are_short_as_a_rule(modules: tuple[Module, ...]) -> None:
    """Nine of ten functions stay below the limit."""
    lengths = sorted(f.lines for m in modules for f in m.functions)
    assert lengths[int(0.9 * (len(lengths) - 1))] <= MOST_FUNCTION_LINES_P90


def test_everything_public_has_a_docstring(modules: tuple[Module, ...]) -> None:
    """Modules, classes and functions say what they are for."""
    bare = [f"{m.name}: module" for m in modules if not ast.get_docstring(m.tree)]
    bare += [m.at(f.node, f.qualified) for m in modules for f in m.functions if f.public and not f.docstring]
    bare += [m.at(node, node.name) for m in modules for node in m.classes if _undocumented(m, node)]
    assert bare == []


def _undocumented(module: Module, node: ast.ClassDef) -> bool:
    is_public = not node.name.startswith("_") and node in module.tree.body
    return is_public and not ast.get_docstring(node)


def test_a_public_function_says_what_it_raises(modules: tuple[Module, ...]) -> None:
    """Who raises an error of a class has a Raises section."""
    silent = [
        m.at(f.node, f"{f.qualified} raises {name}")
        for m in modules
        for f in m.functions
        for name in _escaping(f)
        if f.public and "Raises" not in f.docstring
    ]
    assert not silent, "\n".join(silent)


def _escaping(function: Function) -> Iterator[str]:
    """Yield the classes that a function raises and does not catch itself by name."""
    caught: set[int] = set()
    for node in function.own():
        if isinstance(node, ast.Try):
            names = {name for handler in node.handlers for name in _handled(handler)}
            inside = {id(inner): inner for statement in node.body for inner in ast.walk(statement)}
            caught |= {id(raising) for raising, name, _ in raised(function) if id(raising) in inside and name in names}
    for raising, name, _ in raised(function):
        if id(raising) not in caught and name not in _NO_ERRORS:
            yield name


def _handled(handler: ast.ExceptHandler) -> Iterator[str]:
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    yield from (node.id for node in types if isinstance(node, ast.Name))


def test_our_errors_say_what_and_carry_a_value(modules: tuple[Module, ...]) -> None:
    """None is raised without a word, nine of ten name the value that was wrong."""
    ours = our_errors(modules)
    calls = [(m, node, call) for m in modules for f in m.functions for node, name, call in raised(f) if name in ours]
    assert [m.at(node, "raised without arguments") for m, node, call in calls if not _has_arguments(call)] == []
    valued = [call for _, _, call in calls if call and any(not _is_constant(a) for a in _arguments(call))]
    assert len(valued) >= LEAST_SHARE_OF_ERRORS_WITH_VALUE * len(calls)


def _has_arguments(call: ast.Call | None) -> bool:
    return call is not None and bool(_arguments(call))


def _arguments(call: ast.Call) -> list[ast.expr]:
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def _is_constant(node: ast.expr) -> bool:
    return all(isinstance(part, (ast.Constant, ast.List, ast.Tuple, ast.Load)) for part in ast.walk(node))


def test_numbers_of_the_model_end_in_their_unit(modules: tuple[Module, ...]) -> None:
    """Fields and parameters of agent/model are named by what they count in."""
    nameless = [
        m.at(node, name)
        for m in modules
        if m.name.startswith("agent/model/")
        for name, node in _numbers(m)
        if not _has_unit(name)
    ]
    assert nameless == []


def test_every_exempted_name_is_in_use(modules: tuple[Module, ...]) -> None:
    """The list of numbers without a unit holds no name that is gone."""
    used = {name for m in modules if m.name.startswith("agent/model/") for name, _ in _numbers(m)}
    assert DIMENSIONLESS - used == set()


def _numbers(module: Module) -> Iterator[tuple[str, ast.stmt]]:
    """Yield the name of each field and parameter that is a number, and where it stands."""
    for node in module.classes:
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and _is_number(statement.annotation):
                yield ast.unparse(statement.target), statement
    for function in module.functions:
        arguments = function.node.args
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            if argument.annotation is not None and _is_number(argument.annotation):
                yield argument.arg, function.node


def _is_number(annotation: ast.expr) -> bool:
    """Return whether an annotation is a number, or a number or None."""
    return set(ast.unparse(annotation).split(" | ")) - {"None"} in ({"int"}, {"float"}, {"int", "float"})


def _has_unit(name: str) -> bool:
    return name in DIMENSIONLESS or any(name == unit or name.endswith(f"_{unit}") for unit in UNITS)


def test_only_the_clock_knows_the_time(modules: tuple[Module, ...]) -> None:
    """No other module reads or passes time; workloads measure with their own."""
    readers = [
        place
        for m in modules
        if m.name != "agent/clock.py" and not m.name.startswith("workloads/")
        for place in _time_readings(m)
    ]
    assert readers == []


def _time_readings(module: Module) -> Iterator[str]:
    yield from (
        f"{module.name}:{line}: import {name}" for name, line in module.imports() if name.split(".")[0] == "time"
    )
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and node.attr in _CLOCK_READERS and "date" in ast.unparse(node.value):
            yield module.at(node, ast.unparse(node))


def test_log_events_have_constant_names(modules: tuple[Module, ...]) -> None:
    """Values travel as keys: an event's name is a plain text, never built."""
    built = [
        m.at(node, ast.unparse(node)[:80])
        for m in modules
        for node in ast.walk(m.tree)
        if isinstance(node, ast.Call) and _is_log_call(node) and not _has_constant_event(node)
    ]
    assert built == []


def _is_log_call(node: ast.Call) -> bool:
    function = node.func
    if not isinstance(function, ast.Attribute) or function.attr not in _LOG_METHODS:
        return False
    receiver = ast.unparse(function.value).split("(")[0].split(".")[-1].lower()
    return receiver.endswith(("log", "logger"))


def _has_constant_event(node: ast.Call) -> bool:
    return bool(node.args) and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str)


def test_broad_excepts_are_rare(modules: tuple[Module, ...]) -> None:
    """They stand at the edges of processes and around collectors only."""
    broad = [
        m.at(node, "except")
        for m in modules
        for node in ast.walk(m.tree)
        if isinstance(node, ast.ExceptHandler) and _broad(node)
    ]
    lines = sum(m.code_lines for m in modules)
    assert len(broad) <= MOST_BROAD_EXCEPTS_PER_1000_LINES * lines / 1000, broad


def _broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(_BROAD & set(_handled(handler)))


@pytest.mark.parametrize(
    ("library", "allowed"),
    [("tensorflow", "workloads/"), ("pynvml", "agent/nvml/reader.py")],
    ids=["tensorflow", "pynvml"],
)
def test_a_foreign_library_has_one_door(modules: tuple[Module, ...], library: str, allowed: str) -> None:
    """TensorFlow is met by the workloads only, NVML by the reader child only."""
    strays = [
        f"{m.name}:{line}"
        for m in modules
        if not m.name.startswith(allowed)
        for name, line in m.imports()
        if name.split(".")[0] == library
    ]
    assert strays == []


@pytest.mark.parametrize("package", ["exporters/", "agent/model/"])
def test_of_the_agent_only_the_model_is_seen(modules: tuple[Module, ...], package: str) -> None:
    """Exporters, and the model itself, import nothing else of the agent."""
    strays = [
        f"{m.name}:{line}: {name}"
        for m in modules
        if m.name.startswith(package)
        for name, line in m.imports()
        if name.startswith("agent") and not f"{name}.".startswith("agent.model.")
    ]
    assert strays == []


def test_the_import_contracts_hold() -> None:
    """The arrows between the packages point the way the design says."""
    command = shutil.which("lint-imports", path=str(Path(sys.executable).parent)) or shutil.which("lint-imports")
    assert command is not None, "import-linter is not installed"

    done = subprocess.run([command, "--no-cache"], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_see_what_they_look_for(tmp_path: Path) -> None:
    """A module that breaks every rule is caught by each."""
    text = '''
import time
class Struct:
    weight: int
    wait_s: float | None
def act(log, path, heat: float):
    """Do."""
    try:
        log.info(f"did {path}")
    except Exception:
        raise ValueError(path)
    try:
        raise KeyError(path)
    except KeyError:
        pass
    return datetime.now()
'''
    (tmp_path / "bad.py").write_text(text, encoding="utf-8")
    module = _Stray(tmp_path / "bad.py")
    (function,) = module.functions

    assert list(_escaping(function)) == ["ValueError"]
    assert [name for name, _ in _numbers(module) if not _has_unit(name)] == ["weight", "heat"]
    assert len(list(_time_readings(module))) == 2
    calls = [node for node in ast.walk(module.tree) if isinstance(node, ast.Call) and _is_log_call(node)]
    assert [_has_constant_event(call) for call in calls] == [False]
    handlers = [node for node in ast.walk(module.tree) if isinstance(node, ast.ExceptHandler)]
    assert [_broad(handler) for handler in handlers] == [True, False]
    assert (function.lines, module.code_lines) == (10, 14)
    assert isinstance(module.tree, Documented)


class _Stray(Module):
    """A module outside the product."""

    @property
    def name(self) -> str:
        """Its file's name."""
        return self.path.name
