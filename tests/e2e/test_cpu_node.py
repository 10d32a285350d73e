"""A node without a card, as `make run` starts it: TensorFlow on the CPU, scraped by a real Prometheus."""

from pathlib import Path

import pytest

from tests.support.agent import eventually, running_agent
from tests.support.prometheus import running_prometheus


@pytest.mark.tensorflow
def test_both_cpu_probes_reach_a_real_prometheus(tmp_path: Path) -> None:
    """Within minutes of the start Prometheus holds both results, labelled as the CPU's, and a healthy target."""
    environ = {
        "HEATSOAK_PROBE_ENABLED": "true",
        "HEATSOAK_PROBE_DEVICE": "cpu",
        "HEATSOAK_PROBE_INTERVAL_S": "30",
        "HEATSOAK_PROBE_FIRST_DELAY_S": "1",
        "HEATSOAK_PROBE_HOST_MEMORY_MIB": "1500",
    }
    with running_agent(tmp_path, environ=environ) as agent:
        target = agent.url.removeprefix("http://")
        with running_prometheus(tmp_path / "prometheus", {"heatsoak": target}) as prometheus:
            for metric in ("heatsoak_probe_matmul_flops_per_second", "heatsoak_probe_resnet50_images_per_second"):
                rows = eventually(lambda metric=metric: prometheus.query(metric), metric, timeout_s=100.0)  # type: ignore[misc]
                labels, value = rows[0]
                assert len(rows) == 1
                assert labels["device"] == "cpu"
                assert value > 0.0
            assert prometheus.query("up")[0][1] == 1.0
            assert prometheus.query("heatsoak_node_info")[0][1] == 1.0
