"""Whole pages: valid, complete, unbroken by faults, and what stale readings leave."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.core import Metric as Family
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from agent.model.snapshot import Snapshot
from exporters.families import gauge, single
from exporters.prometheus import MetricsPage
from tests.support import snapshots

GOLDEN = Path(__file__).parent / "golden" / "consumer.txt"
EVERY = pytest.mark.parametrize("name", list(snapshots.ALL))


def page_of(snapshot: Snapshot, *, fresh: bool = True) -> str:
    """Return the text page of a snapshot."""
    page = MetricsPage(version="1.2.3", definitions=snapshots.HOST_METRICS)
    return page.render(snapshot, fresh=fresh).decode()


def samples(page: str) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    """Return name and labels of every series on a text page, in their order."""
    return [(each.name, tuple(sorted(each.labels.items()))) for family in parse_text(page) for each in family.samples]


@EVERY
def test_promtool_finds_nothing_to_complain_of(name: str) -> None:
    """Names, units, help and types are as Prometheus wants them."""
    promtool = shutil.which("promtool")
    assert promtool, "promtool is needed; it comes with the distribution's package prometheus"
    page = page_of(snapshots.ALL[name]())
    checked = subprocess.run([promtool, "check", "metrics"], input=page, text=True, capture_output=True, check=False)
    assert (checked.returncode, checked.stdout + checked.stderr) == (0, "")


@EVERY
def test_both_formats_are_read_back_alike_and_repeat_nothing(name: str) -> None:
    """Text and OpenMetrics hold the same series, each once."""
    page = MetricsPage(version="1.2.3", definitions=snapshots.HOST_METRICS)
    snapshot = snapshots.ALL[name]()
    text = [
        (each.name, each.labels, each.value)
        for family in parse_text(page.render(snapshot, "text").decode())
        for each in family.samples
    ]
    openmetrics = [
        (each.name, each.labels, each.value)
        for family in parse_openmetrics(page.render(snapshot, "openmetrics").decode())  # type: ignore[no-untyped-call]
        for each in family.samples
    ]
    assert text == openmetrics
    found = samples(page.render(snapshot).decode())
    assert len(set(found)) == len(found)


def without_python(page: str) -> str:
    """Return the page without the line that names the Python in use."""
    return "".join(line for line in page.splitlines(keepends=True) if not line.startswith("heatsoak_build_info{"))


def test_the_page_of_a_small_card_is_as_reviewed() -> None:
    """The golden page changes only on purpose: ``python -m`` with this module's name renews it."""
    assert without_python(page_of(snapshots.consumer_node())) == GOLDEN.read_text()


def test_readings_that_are_too_old_are_not_served() -> None:
    """What is left is about the agent: it tells how old the readings were."""
    page = page_of(snapshots.mixed_node(), fresh=False)
    names = {name for name, _ in samples(page)}
    assert {"heatsoak_build_info", "heatsoak_snapshot_timestamp_seconds", "heatsoak_nvml_up"} <= names
    assert not any(
        name.startswith(("heatsoak_gpu_", "heatsoak_host_", "heatsoak_probe_", "heatsoak_card_")) for name in names
    )


def test_a_page_is_made_anew_for_a_new_snapshot_and_for_its_ageing() -> None:
    """What is shared between formats never outlives its snapshot."""
    page = MetricsPage(version="1", definitions=snapshots.HOST_METRICS)
    first, second = snapshots.idle_node(), snapshots.cpu_only_node()
    assert b"heatsoak_gpu_power_watts" in page.render(first)
    assert b"heatsoak_gpu_power_watts" not in page.render(first, fresh=False)
    assert b"heatsoak_gpu_power_watts" in page.render(first)
    assert b"heatsoak_gpu_power_watts" not in page.render(second)


def test_what_the_probes_found_follows_their_records() -> None:
    """Kept while the records are the same, made anew when one changes, gone when they are."""
    page = MetricsPage(version="1", definitions=snapshots.HOST_METRICS)
    value = b"heatsoak_probe_resnet50_images_per_second{"
    first = page.render(snapshots.snapshot(probes=snapshots.card_probes(0)))
    again = page.render(snapshots.snapshot(probes=snapshots.card_probes(0)))
    assert first == again
    assert value in again
    slower = page.render(snapshots.snapshot(probes=snapshots.card_probes(0, 0.5)))
    assert value in slower
    assert slower != again
    assert value not in page.render(snapshots.snapshot())


def test_a_section_that_raises_costs_itself_only() -> None:
    """The page stays valid, what came before stays, and the loss is counted on the page itself."""

    def own() -> Iterator[Family]:
        yield single(gauge("heatsoak_before", "Came before."), 1)
        raise ZeroDivisionError

    page = MetricsPage(version="1", definitions=snapshots.HOST_METRICS, own=own).render(snapshots.idle_node()).decode()
    assert "heatsoak_before 1.0\n" in page
    assert 'heatsoak_exporter_left_out_total{reason="family"} 1.0\n' in page
    assert 'heatsoak_exporter_left_out_total{reason="duplicate_series"} 0.0\n' in page
    assert "heatsoak_gpu_power_watts" in page


def test_two_cards_with_one_identity_do_not_break_the_page() -> None:
    """Were a driver to name two cards alike, the second's series are left out and counted."""
    twins = snapshots.snapshot((snapshots.card(0), snapshots.card(0)))
    page = page_of(twins)
    assert len(set(samples(page))) == len(samples(page))
    assert 'left_out_total{reason="duplicate_series"} 0.0' not in page


if __name__ == "__main__":  # renews the golden page; its diff is the review
    GOLDEN.write_text(without_python(page_of(snapshots.consumer_node())))
