"""The quantities table keeps its promises about names, units and where values come from."""

import re
import shutil
import subprocess

import pynvml
import pytest

from agent.model.quantities import BY_KEY, QUANTITIES
from agent.model.quantity import Bit, Call, Derived, Fabric, Field, Gpm, LinkSum, Peak, Quantity, Source
from agent.model.vocabulary import TIER_PERIOD_S
from agent.nvml.derive import RULES

UNITS = ("celsius", "watts", "joules", "hertz", "bytes", "seconds", "ratio")
DIMENSIONLESS = frozenset(
    {
        "pstate",
        "throttle_active",
        "row_remap_pending",
        "row_remap_failed",
        "retired_pages_pending",
        "recovery_action",
        "xid_last_code",
        "pcie_generation",
        "pcie_generation_max",
        "pcie_width_lanes",
        "pcie_width_max_lanes",
        "nvlink_active_links",
        "fabric_state",
        "fabric_status",
        "fabric_health",
        "processes",
        "mig_enabled",
        "ecc_enabled",
        "persistence_enabled",
        "compute_mode",
    }
)
ROWS = pytest.mark.parametrize("row", QUANTITIES, ids=lambda row: row.key)


def names(source: Source) -> list[str]:
    """Return every name of the binding that a source relies on."""
    if isinstance(source, Call):
        return [f"nvml{source.function}", *(arg for arg in source.args if isinstance(arg, str))]
    if isinstance(source, Bit):
        return [f"nvml{source.function}", source.constant]
    if isinstance(source, Field | LinkSum):
        return [source.name]
    if isinstance(source, Peak):
        return [source.buffer]
    return [source.metric] if isinstance(source, Gpm) else []


def test_keys_are_unique() -> None:
    """No row hides behind another one's key."""
    assert len(BY_KEY) == len(QUANTITIES)


def test_series_are_unique() -> None:
    """No two rows make the same series."""
    series = [(row.metric, row.labels) for row in QUANTITIES]
    assert len(set(series)) == len(series)


def test_rows_of_one_metric_agree() -> None:
    """Help, kind and label names belong to the metric, so all its rows share them."""
    seen: dict[str, tuple[str, str, tuple[str, ...]]] = {}
    for row in QUANTITIES:
        says = (row.help, row.kind, tuple(name for name, _ in row.labels))
        assert seen.setdefault(row.metric, says) == says, row.key


@ROWS
def test_name_tells_kind_and_unit(row: Quantity) -> None:
    """Counters end in _total, and what has a unit names its base unit last."""
    assert re.fullmatch(r"heatsoak_gpu_[a-z0-9_]+", row.metric)
    name = row.metric.removeprefix("heatsoak_gpu_")
    assert (row.kind == "counter") == name.endswith("_total")
    if row.kind == "gauge":
        assert name in DIMENSIONLESS or name.removesuffix("_per_second").endswith(UNITS)


@ROWS
def test_help_is_one_sentence(row: Quantity) -> None:
    """Help starts with a capital, ends with a full stop and fits a line of a table."""
    assert re.fullmatch(r"[A-Z][^\n]{8,200}\.", row.help)


@ROWS
def test_range_is_not_empty(row: Quantity) -> None:
    """A row believes some value, and an upper bound that another row sets exists."""
    assert row.low < row.high
    assert not row.at_most or BY_KEY[row.at_most].metric.endswith(row.metric.rsplit("_", 1)[1])


@ROWS
def test_ratio_is_at_most_one(row: Quantity) -> None:
    """A share is served as 0 to 1."""
    assert not row.metric.endswith("_ratio") or (row.low, row.high) == (0, 1)


@ROWS
def test_every_name_exists_in_the_binding(row: Quantity) -> None:
    """Functions and constants are spelled as in nvidia-ml-py."""
    assert [name for source in row.sources for name in names(source) if not hasattr(pynvml, name)] == []


@ROWS
def test_row_has_a_source_and_a_tier(row: Quantity) -> None:
    """A row is read from somewhere, at a known pace; what is derived is derived by a rule that exists."""
    assert row.sources
    assert row.tier in TIER_PERIOD_S
    assert [source for source in row.sources if isinstance(source, Derived) and source not in RULES] == []


def test_fabric_attributes_exist_in_the_binding() -> None:
    """The fabric rows name members of the binding's newest struct."""
    members = {name for name, _ in pynvml.c_nvmlGpuFabricInfo_v3_t._fields_}
    wanted = {source.attribute for row in QUANTITIES for source in row.sources if isinstance(source, Fabric)}
    assert wanted <= members


def test_promtool_finds_nothing_to_say() -> None:
    """The names pass Prometheus' own linter."""
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing; make test installs it"
    lines = []
    for metric, row in {row.metric: row for row in QUANTITIES}.items():
        labels = ",".join(f'{name}="{value}"' for name, value in row.labels)
        lines += [f"# HELP {metric} {row.help}", f"# TYPE {metric} {row.kind}", f"{metric}{{{labels}}} 1"]
    done = subprocess.run(
        [promtool, "check", "metrics"], input="\n".join(lines) + "\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
