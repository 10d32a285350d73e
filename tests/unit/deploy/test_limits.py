"""The memory limits that are shipped hold what runs below them."""

import re

import pytest

from agent.config.settings import Settings
from agent.probes.memory import needed_mib
from agent.probes.plan import plans
from tests.support.agent import ROOT

AGENT_MIB = 512.0
"""More than agent and reader take."""


@pytest.mark.parametrize(
    ("file", "limit"),
    [
        ("deploy/systemd/heatsoak.service", r"^MemoryMax=(\d+)G$"),
        ("deploy/kubernetes/chart/templates/daemonset.yaml", r"limits: \{memory: .*probing \| ternary \"(\d+)Gi\""),
    ],
)
def test_every_scheduled_child_fits_below_the_limit_beside_the_agent(file: str, limit: str) -> None:
    """Else it would be skipped for ever, or be let in and killed."""
    found = re.search(limit, (ROOT / file).read_text(), re.MULTILINE)
    assert found
    every = [request for plan in plans("gpu", daily=True, data_dir="") for request in plan.requests]
    assert int(found[1]) * 1024.0 >= AGENT_MIB + needed_mib(every, "gpu", Settings().probe.host_memory_mib)
