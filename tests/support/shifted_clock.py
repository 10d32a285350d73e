"""Clocks of a process of its own that a test moves while it runs: the machine's stay as they are."""

import fcntl
import hashlib
import os
import struct
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")
_FOLDER = Path(__file__).parents[2] / ".build" / "shiftedclock"
_NS = 1_000_000_000


class ShiftedClock:
    """What moves the clocks of every program started with ``environ``, and of their children."""

    def __init__(self, directory: Path) -> None:
        """Begin with the machine's own time; the shifts are kept in a file in ``directory``."""
        self._path = directory / "clock-shifts"
        self._shifts_s = {"wall": 0.0, "monotonic": 0.0}
        self._path.write_bytes(bytes(16))

    @property
    def environ(self) -> Mapping[str, str]:
        """Return what a program needs in its environment from its start."""
        return {"LD_PRELOAD": str(_library()), "SHIFTED_CLOCK_FILE": str(self._path)}

    def step_wall(self, by_s: float) -> None:
        """Set the wall clock forward, or back where negative, as an operator or NTP would."""
        self._step("wall", by_s)

    def pass_by(self, by_s: float) -> None:
        """Let time go by on both clocks in which the program did nothing."""
        self._step("wall", by_s)
        self._step("monotonic", by_s)

    def _step(self, name: str, by_s: float) -> None:
        self._shifts_s[name] += by_s
        number = round(self._shifts_s[name] * _NS)
        with self._path.open("r+b") as file:
            file.seek(0 if name == "wall" else 8)
            file.write(struct.pack("=q", number))


def _library() -> Path:
    """Return the preloaded library, built unless its source is unchanged."""
    digest = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    made = _FOLDER / f"shiftedclock-{digest}.so"
    _FOLDER.mkdir(parents=True, exist_ok=True)
    with (_FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            scratch = made.with_suffix(f".{os.getpid()}")
            command = ["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
            subprocess.run([*command, "-o", scratch, _SOURCE, "-ldl", "-lpthread"], check=True, timeout=60)
            scratch.replace(made)
    return made
