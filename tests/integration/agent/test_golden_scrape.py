"""A scrape of a real card, kept: what dashboards and rules out there rely on must not vanish."""

import subprocess
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.support.agent import eventually, running_agent

GOLDEN = Path(__file__).parent / "golden" / "h200.txt"
_OF_A_CARD = "heatsoak_gpu_"


def _series(page: str) -> set[tuple[str, tuple[str, ...]]]:
    """Return the card's samples by name and by the labels beside gpu and uuid that tell them apart."""
    return {
        (
            sample.name,
            tuple(sorted(f"{k}={v}" for k, v in sample.labels.items() if k not in ("gpu", "uuid"))),
        )
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name.startswith(_OF_A_CARD) and not sample.name.endswith("_info")
    }


def test_the_kept_scrape_is_valid_and_names_no_real_card() -> None:
    """The page passes promtool's checks, and its identifiers are masked."""
    page = GOLDEN.read_text(encoding="utf-8")
    checked = subprocess.run(
        ["promtool", "check", "metrics"], input=page, capture_output=True, text=True, timeout=30, check=False
    )
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")
    assert 'uuid="GPU-00000000-0000-4000-8000-000000000001"' in page


def test_every_series_of_the_real_card_is_still_served(tmp_path: Path) -> None:
    """The agent on the recorded card serves each series that the real card's scrape has, under the same labels."""
    wanted = _series(GOLDEN.read_text(encoding="utf-8"))
    with running_agent(tmp_path, scenario="h200", environ={"HEATSOAK_AGENT_TICK_S": "0.2"}) as agent:
        eventually(lambda: agent.get("/readyz")[0] == 200, "the first tick")
        eventually(lambda: wanted <= _series(agent.get("/metrics")[1]), "every series of the golden scrape")
