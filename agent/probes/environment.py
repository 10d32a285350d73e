"""The interpreter a probe child runs under and the environment it sees, built from nothing."""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from agent.clock import Clock
from agent.errors import HeatsoakError
from agent.probes.child import ChildCommand, Watch, run_child

_ASK: Final = "import json, sys; print(); print(json.dumps([list(sys.version_info[:3]), [p for p in sys.path if p]]))"
_ASK_DEADLINE_S: Final = 20.0
_OLDEST: Final = (3, 8)
_NCCL_SETTINGS: Final = "NCCL_"
_DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class InterpreterError(HeatsoakError):
    """The interpreter that should run the probes cannot be used."""


class Interpreter(msgspec.Struct, frozen=True):
    """A Python that runs probes, and where it finds packages."""

    python: str
    version: tuple[int, int, int]
    paths: tuple[str, ...]
    python_path: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        """The start of a command line: isolated from the caller's environment.

        ``-I`` ignores PYTHONPATH, so where directories are given only the user's own packages are left out.
        """
        return (self.python, "-s" if self.python_path else "-I")


def find_interpreter(
    python: str, python_path: tuple[str, ...], directory: Path, clock: Clock, watch: Watch
) -> Interpreter:
    """Ask the interpreter ``python`` (this one where empty) for its version and package directories.

    Raises:
        InterpreterError: It cannot be started, is too old, or does not answer in time.
    """
    named = python or sys.executable
    draft = Interpreter(named, (0, 0, 0), (), python_path)
    environment = child_environment(draft, "", 1, directory, {})
    command = ChildCommand((*draft.argv, "-c", _ASK), environment, directory, _ASK_DEADLINE_S)
    answer = run_child(command, clock, watch, lambda _event: None)
    if answer.ended == "not_started":
        raise InterpreterError(f"probe.python cannot be started: {answer.detail}")
    with contextlib.suppress(msgspec.MsgspecError, IndexError):
        last_line = answer.output.splitlines()[-1].encode()
        version, paths = msgspec.json.decode(last_line, type=tuple[tuple[int, int, int], tuple[str, ...]])
        if version < _OLDEST:
            raise InterpreterError(f"probe.python {named} is Python {version[0]}.{version[1]}; 3.8 or newer is needed")
        return msgspec.structs.replace(draft, version=version, paths=paths)
    raise InterpreterError(
        f"probe.python {named} does not answer as a Python interpreter "
        f"(exit code {answer.code} after {answer.elapsed_s:.1f} s): {answer.output.strip()[-200:]}"
    )


def child_environment(
    interpreter: Interpreter, visible_devices: str, threads: int, directory: Path, inherited: Mapping[str, str]
) -> dict[str, str]:
    """Return all that a child finds in its environment.

    ``visible_devices`` are the UUIDs of the cards it may see, in their order and with commas, empty for
    none; ``threads`` of 0 leaves the count to the libraries. Of ``inherited`` only the search paths of
    programs and libraries are taken, and the operator's settings of NCCL, which may keep cards apart that cannot
    work together. CUDA that came as wheels beside TensorFlow is put on both paths, since the loader does not
    look there.
    """
    libraries = [str(path) for path in _below(interpreter.paths, "nvidia/*/lib")]
    programs = [str(path) for path in _below(interpreter.paths, "nvidia/cuda_nvcc/bin")]
    environment = {name: value for name, value in inherited.items() if name.startswith(_NCCL_SETTINGS)} | {
        "PATH": ":".join([*programs, inherited.get("PATH") or _DEFAULT_PATH]),
        "LD_LIBRARY_PATH": ":".join(filter(None, [*libraries, inherited.get("LD_LIBRARY_PATH", "")])),
        "HOME": str(directory),
        "TMPDIR": str(directory),
        "LANG": "C.UTF-8",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": visible_devices,
        "TF_CPP_MIN_LOG_LEVEL": "1",
    }
    if threads:
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTEROP_THREADS"), str(threads))
    if interpreter.python_path:
        environment["PYTHONPATH"] = ":".join(interpreter.python_path)
    return {name: value for name, value in environment.items() if value or name == "CUDA_VISIBLE_DEVICES"}


def _below(roots: tuple[str, ...], pattern: str) -> list[Path]:
    found = []
    for root in dict.fromkeys(roots):
        with contextlib.suppress(OSError):
            found += sorted(path for path in Path(root).glob(pattern) if path.is_dir())
    return found
