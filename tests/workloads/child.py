"""Starts a probe child as the agent does and reads what it answers through the agent's own decoder."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent.model.probe import ChildEvent, ChildSpec, DeviceKind, Done, Hello, Phase, ProbeRequest, ProbeResult
from agent.probes.decode import decode_event

DEADLINE_S = 240.0
"""Long enough for two busy cores."""


class Answer(msgspec.Struct, frozen=True):
    """Everything one child said, and how it ended."""

    events: tuple[ChildEvent, ...]
    exit_code: int
    errors: str

    @property
    def hello(self) -> Hello:
        """The first event."""
        assert isinstance(self.events[0], Hello), self.errors
        return self.events[0]

    @property
    def done(self) -> Done:
        """The last event."""
        assert isinstance(self.events[-1], Done), self.errors
        return self.events[-1]

    @property
    def results(self) -> list[ProbeResult]:
        """The results in order."""
        return [event for event in self.events if isinstance(event, ProbeResult)]

    @property
    def phases(self) -> list[tuple[int, str]]:
        """The phases in order, each with its request's index."""
        return [(event.request, event.phase) for event in self.events if isinstance(event, Phase)]


def run_child(
    command: Sequence[str],
    requests: Sequence[ProbeRequest],
    *,
    device: DeviceKind = "cpu",
    memory_limit_bytes: int = 0,
    cache_dir: str = "",
    seed: int = 0,
    replicas: int = 1,
) -> Answer:
    """Run ``command`` with a result descriptor behind it on a specification of these requests."""
    spec = ChildSpec(
        version=1,
        device=device,
        requests=tuple(requests),
        memory_limit_bytes=memory_limit_bytes,
        threads=2,
        cache_dir=cache_dir,
        seed=seed,
        replicas=replicas,
    )
    return run_text(command, msgspec.json.encode(spec))


def run_text(command: Sequence[str], text: bytes) -> Answer:
    """Run ``command`` with a result descriptor behind it on what need not be a specification."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as lines:
        process = subprocess.Popen(
            [*command, str(write)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[write],
            env={"PATH": os.environ["PATH"], "TF_CPP_MIN_LOG_LEVEL": "2"},
        )
        os.close(write)
        _, errors = process.communicate(text, timeout=DEADLINE_S)
        events = tuple(decode_event(line.rstrip(b"\n")) for line in lines)
    return Answer(events, process.returncode, errors.decode(errors="replace"))


def package_command(python: str, package: Path) -> list[str]:
    """Return how the agent starts a child: the package as one file, isolated."""
    return ["nice", "-n", "10", python, "-I", str(package)]
