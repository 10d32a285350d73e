"""What tests with real probe children share."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agent.clock import SystemClock
from agent.config.settings import ProbeSettings
from agent.model.probe import ProbeRequest
from agent.model.snapshot import Card
from agent.nvml.source import CardSource
from agent.probes.job import Job
from agent.probes.runner import ProbeRunner

STUB = Path(__file__).parents[2] / "support" / "stub_probe"
CARD_UUID = "GPU-00000000-0000-0000-0000-00000000000a"

MakeRunner = Callable[..., ProbeRunner]


@pytest.fixture
def make_runner(tmp_path: Path) -> MakeRunner:
    """Return how to make a runner of stub children."""

    def make(
        *,
        deadline_s: float = 30.0,
        source: CardSource | None = None,
        tenants: Callable[[Card], list[int]] = lambda _: [],
    ) -> ProbeRunner:
        settings = ProbeSettings(deadline_s=deadline_s)
        return ProbeRunner(settings, source, SystemClock(), tmp_path / "state", tenants=tenants, workloads=STUB)

    return make


@pytest.fixture(autouse=True)
def no_process_is_left() -> Iterator[None]:
    """Fail where a test leaves a child of this process, dead or alive."""
    before = children()
    yield
    assert children() - before == set()


def children() -> set[int]:
    """Return the ids of this process's children, zombies included."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == os.getpid():
                found.add(int(entry.name))
    return found


def job(behaviour: str = "", *, card: Card | None = None, probes: int = 1, yield_to_tenants: bool = True) -> Job:
    """Return a job whose child plays a behaviour."""
    options = {"behaviour": behaviour} if behaviour else {}
    first = ProbeRequest("matmul", "bf16", options=options)
    requests = (first, ProbeRequest("resnet50", "bf16"))[:probes]
    return Job(requests=requests, card=card, trigger="command", threads=2, yield_to_tenants=yield_to_tenants)
