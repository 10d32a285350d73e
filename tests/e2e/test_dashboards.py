"""Every expression of every panel, annotation and rule, run by a real Prometheus over real agents."""

import contextlib
import json
import re
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agent.clock import SystemClock
from agent.model.probe import ProbeRecord
from agent.state.store import Store
from grafana.build import BOARDS
from grafana.model import Panel
from tests.support.agent import eventually, running_agent
from tests.support.fakenvml import write_scenario
from tests.support.names import RULES, rules
from tests.support.prometheus import Prometheus, running_prometheus
from tests.support.records import record

pytestmark = pytest.mark.timeout(240)
FULL = """
include eight
card 1 nvmlDeviceGetCurrentClocksEventReasons = nvmlClocksThrottleReasonHwThermalSlowdown
card 2 nvmlDeviceGetTotalEccErrors NVML_MEMORY_ERROR_TYPE_UNCORRECTED NVML_VOLATILE_ECC = 2
event 3 at 8s xid 31
card all field NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX 0xffffffff = 0+1e6/s
card all field NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX 0xffffffff = 0+1e6/s
"""
SCENARIOS = {
    "minimal": "consumer",
    "mig": "mig",
    "lost": "include lost\ncard 2 * = GPU_IS_LOST during 5..",
    "none": None,
}
VARIABLES = {
    "$__rate_interval": "15s",
    "$__range": "1h",
    "$cluster": ".*",
    "$rack": ".*",
    "$node": ".*",
    "$model": ".*",
    "$card": ".*",
    "$serial": ".*",
    "$uuid": ".*",
}
NOT_DUE = {
    ("heatsoak-fleet", "Input-bound cards"): "no job of these agents starves",
    ("heatsoak-fleet", "Not probed for a week"): "the probes are an hour old",
    ("heatsoak-fleet", "Collectors that fail"): "every collector works",
    ("heatsoak-fleet", "Runs of probes by result"): "probes are switched off",
    ("heatsoak-burnin", "Progress"): "no burn-in runs",
    ("heatsoak-burnin", "Phase"): "no burn-in runs",
    ("heatsoak-burnin", "Time left"): "no burn-in runs",
    ("heatsoak-pipeline", "Why, in one word"): "no job of these agents starves",
    ("heatsoak-pipeline", "Most that feeding would give"): "no job of these agents starves",
    ("heatsoak-pipeline", "CPU of the job's process, and what it may use"): "no job of these agents starves",
    ("heatsoak-pipeline", "What the job's process waits for"): "no job of these agents starves",
    ("heatsoak-card", "Measured against its own reference"): "no card of these agents is slow",
}
"""Panels without data here, and why; each of them must be empty, so that the list stays true."""


def seed(directory: Path) -> None:
    """Give the full node probes of the last hours, the pipeline's too."""
    clock = SystemClock()
    store = Store.open(directory / "state", clock)
    for hours in (3, 2, 1):
        for index in range(8):
            uuid = f"GPU-00000000-0000-4000-8000-{index + 1:012d}"
            measured = record(clock.wall_s() - hours * 3600, 655e12 + index * 1e12, uuid=uuid, gpu=index)
            store.add_probe(measured)
            store.add_probe(renamed(measured, "resnet50", "", "256x224x224x3", 2051.0))
    for variant, value in (("host_tuned", 5e3), ("card", 4e3), ("together_tuned", 3.8e3), ("together_untuned", 700.0)):
        store.add_probe(renamed(measured, "pipeline", variant, "64x224x224x3", value))
    store.close()


def renamed(one: ProbeRecord, probe: str, variant: str, shape: str, value: float) -> ProbeRecord:
    """Return the record of another probe."""
    result = msgspec.structs.replace(one.result, probe=probe, variant=variant, shape=shape, value=value)
    return msgspec.structs.replace(one, result=result)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Run five agents (full, minimal, MIG, with a lost card, without a card) and a Prometheus with all our rules."""
    root = tmp_path_factory.mktemp("fleet")
    with contextlib.ExitStack() as stack:
        targets = {}
        for at, name in enumerate(("full", *SCENARIOS)):
            directory = root / name
            directory.mkdir()
            text = FULL if name == "full" else SCENARIOS[name]
            if name == "full":
                seed(directory)
            scenario = text if text is None or "\n" not in text else write_scenario(directory / "cards.scenario", text)
            config = f'[node]\nname = "node-{name}"\nrack = "R1"\nposition = "U{at:02}"\n'
            environ = {"HEATSOAK_NVML_ENABLED": "false"} if text is None else {}
            agent = stack.enter_context(running_agent(directory, scenario=scenario, config=config, environ=environ))
            targets[f"heatsoak-{name}"] = agent.url.removeprefix("http://")
        targets["heatsoak-gone"] = "127.0.0.1:9"
        files = tuple(sorted(path for path in RULES.glob("*.yaml") if "groups:" in path.read_text()))
        server = stack.enter_context(running_prometheus(root / "prometheus", targets, files))
        held = 'heatsoak_verdict_active{rule="thermal_throttling"}'
        eventually(lambda: server.query(held), "heat on the full node", 90.0)
        eventually(lambda: server.query('heatsoak_card_state{state="lost"} == 1'), "the lost card", 60.0)
        eventually(lambda: server.query("card:heatsoak_problem:rank == 6"), "recorded series", 60.0)
        yield server


def ask(server: Prometheus, expression: str) -> int:
    """Return how many series an expression has over the last minute.

    Raises:
        AssertionError: Prometheus refuses it; with its own words.
    """
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert not re.search(r"\$[a-z_]", expression), expression
    end_s = time.time()
    query = urllib.parse.urlencode({"query": expression, "start": end_s - 20, "end": end_s, "step": 2})
    try:
        with urllib.request.urlopen(f"{server.url}/api/v1/query_range?{query}", timeout=30) as answer:
            return len(json.load(answer)["data"]["result"])
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(f"{expression}: {error.read().decode()}") from None


def panels() -> list[tuple[str, Panel]]:
    """Return every panel with its board's uid."""
    return [(board.uid, panel) for board in BOARDS for row in board.rows for panel in row.panels]


def test_every_panel_has_data_where_data_is_due(prometheus: Prometheus) -> None:
    """No expression is refused, and only the panels named above are empty."""
    empty = {
        (uid, panel.title) for uid, panel in panels() if not sum(ask(prometheus, one.expr) for one in panel.queries)
    }
    assert empty == NOT_DUE.keys()


def test_every_annotation_and_variable_is_understood(prometheus: Prometheus) -> None:
    """Annotations are expressions; variables name a label of a series that is there."""
    for board in BOARDS:
        for annotation in board.annotations:
            ask(prometheus, annotation.expr)
        for variable in board.variables:
            series, _, label = variable.query.removeprefix("label_values(").removesuffix(")").rpartition(", ")
            assert ask(prometheus, f'{series.rstrip("}")}{{{label}=~".*"}}' if "{" not in series else series) > 0


@pytest.mark.parametrize("name", [path.name for path in sorted(RULES.glob("*.yaml")) if "groups:" in path.read_text()])
def test_every_rule_is_evaluated_without_an_error(prometheus: Prometheus, name: str) -> None:
    """Prometheus itself has run them all meanwhile; none failed."""
    for rule in rules(name):
        ask(prometheus, rule["expr"])
    with urllib.request.urlopen(f"{prometheus.url}/api/v1/rules", timeout=30) as answer:
        groups = json.load(answer)["data"]["groups"]
    troubles = {
        rule["name"]: rule["lastError"]
        for group in groups
        if group["file"].endswith(name)
        for rule in group["rules"]
        if rule["health"] != "ok"
    }
    assert not troubles


def test_a_minimal_card_fills_the_panels_that_need_little(prometheus: Prometheus) -> None:
    """A consumer card shows load, power, heat, clocks and reasons; what it lacks its panels explain."""
    here = '* on (instance) group_left () (heatsoak_node_info{node="node-minimal"})'
    for metric in (
        "heatsoak_gpu_utilization_ratio",
        "heatsoak_gpu_power_watts",
        "heatsoak_gpu_temperature_celsius",
        'heatsoak_gpu_clock_hertz{clock="sm"}',
        "heatsoak_gpu_throttle_active",
        "heatsoak_gpu_memory_used_bytes",
    ):
        assert ask(prometheus, f"{metric} {here}") > 0, metric
    assert ask(prometheus, f"heatsoak_gpu_ecc_errors_total {here}") == 0


def test_names_of_other_exporters_are_served_with_their_labels(prometheus: Prometheus) -> None:
    """A dashboard made for dcgm-exporter or nvidia_gpu_exporter finds temperature, power and identity."""
    assert ask(prometheus, 'DCGM_FI_DEV_GPU_TEMP{modelName="NVIDIA H200", UUID=~"GPU-.+", Hostname="node-full"}') == 8
    assert ask(prometheus, 'DCGM_FI_DEV_SM_CLOCK{device="nvidia0"} > 100') > 0
    assert ask(prometheus, 'nvidia_smi_power_draw_watts{uuid!~"GPU-.*"}') > 0


def test_faults_raise_alerts_and_health_does_not(prometheus: Prometheus) -> None:
    """Pending or firing are: the hot card, the faulty one, the lost one, the agent that is not there."""
    expected = {
        ("CardThermalThrottling", "node-full", "1"),
        ("CardFaulty", "node-full", "2"),
        ("CardLost", "node-lost", "2"),
        ("AgentDown", "", ""),
    }
    eventually(lambda: alerts(prometheus) >= expected, f"{expected}")
    assert alerts(prometheus) == expected


def alerts(server: Prometheus) -> set[tuple[str, str, str]]:
    """Return name, node and card of every alert that is pending or firing."""
    return {(row["alertname"], row.get("node", ""), row.get("gpu", "")) for row, _ in server.query("ALERTS")}
