"""Lets a child process see the cards of a scenario instead of real ones."""

import os
from collections.abc import Sequence
from pathlib import Path

from tests.fakenvml.build import build

SCENARIOS = Path(__file__).parents[1] / "fakenvml" / "scenarios"


def scenario_path(name: str) -> Path:
    """Return the file of a scenario that the repository holds, as ``eight``.

    Raises:
        FileNotFoundError: there is none of that name.
    """
    path = SCENARIOS / f"{name}.scenario"
    if not path.exists():
        known = ", ".join(sorted(file.stem for file in SCENARIOS.glob("*.scenario")))
        raise FileNotFoundError(f"scenario {name!r}: not found; there are {known}")
    return path


def fake_env(scenario: str | Path, *, epoch: float | None = None, speed: float | None = None) -> dict[str, str]:
    """Return the whole environment of a child that shall see a scenario: a name of the repository, or a file's path.

    ``epoch`` is the second of CLOCK_MONOTONIC that is second 0 of the scenario (else the moment at which the
    library is loaded); scenario time runs ``speed`` times as fast as real time.

    Raises:
        FileNotFoundError: there is no scenario of that name.
    """
    path = scenario if isinstance(scenario, Path) else scenario_path(scenario)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("FAKE_NVML_")}
    environment["LD_LIBRARY_PATH"] = os.pathsep.join(filter(None, [str(build()), environment.get("LD_LIBRARY_PATH")]))
    environment["FAKE_NVML_SCENARIO"] = str(path)
    if epoch is not None:
        environment["FAKE_NVML_EPOCH"] = repr(epoch)
    if speed is not None:
        environment["FAKE_NVML_SPEED"] = repr(speed)
    return environment


def write_scenario(path: Path, lines: str | Sequence[str]) -> Path:
    """Write a scenario in one step, so that a process that reads it sees the old or the new one; return ``path``.

    Names after ``include`` that the repository holds need no path.
    """
    text = lines if isinstance(lines, str) else "\n".join(lines)
    found = [_resolved(line) for line in text.splitlines()]
    scratch = path.with_name(f".{path.name}.new")
    scratch.write_text("\n".join(found) + "\n", encoding="utf-8")
    scratch.replace(path)
    return path


def _resolved(line: str) -> str:
    words = line.split()
    if words[:1] == ["include"] and (SCENARIOS / f"{words[1]}.scenario").exists():
        return f"include {SCENARIOS / words[1]}"
    return line
