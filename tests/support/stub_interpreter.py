"""An interpreter whose probe children behave as told, for agents that run as a process of their own."""

import shlex
import sys
from pathlib import Path

_STUB = Path(__file__).parent / "stub_probe"


class StubInterpreter:
    """A program to name in ``probe.python``: it answers as this Python does, but runs stub children."""

    def __init__(self, directory: Path, behaviour: str = "well") -> None:
        """Write it into ``directory``; see ``behave`` for ``behaviour``."""
        self.path = directory / "stub-python"
        self._behaviour = directory / "stub-behaviour"
        self.behave(behaviour)
        python = shlex.quote(sys.executable)
        self.path.write_text(
            "#!/bin/sh\n"
            f'[ "$2" = -c ] && exec {python} "$@"\n'
            f"STUB_BEHAVIOUR=$(cat {shlex.quote(str(self._behaviour))})\n"
            "export STUB_BEHAVIOUR\n"
            f'exec {python} -I {shlex.quote(str(_STUB))} "$3"\n'
        )
        self.path.chmod(0o755)

    def behave(self, behaviour: str) -> None:
        """From the next child on, play this function of the stub; of several, with commas, one a card."""
        scratch = self._behaviour.with_suffix(".new")
        scratch.write_text(behaviour)
        scratch.replace(self._behaviour)

    def settings(self) -> dict[str, str]:
        """Return the variables that make an agent probe with it, at once and often, on cards at rest."""
        return {
            "HEATSOAK_PROBE_ENABLED": "true",
            "HEATSOAK_PROBE_PYTHON": str(self.path),
            "HEATSOAK_PROBE_INTERVAL_S": "5",
            "HEATSOAK_PROBE_JITTER": "0",
            "HEATSOAK_PROBE_FIRST_DELAY_S": "0.5",
            "HEATSOAK_PROBE_DEADLINE_S": "20",
            "HEATSOAK_PROBE_IDLE_S": "0.1",
            "HEATSOAK_PROBE_DUTY_BUDGET": "1",
            "HEATSOAK_PROBE_DAILY": "false",
            "HEATSOAK_PROBE_HOST_MEMORY_MIB": "0",
            "HEATSOAK_PROBE_TRUST_PIDS": "yes",
        }
