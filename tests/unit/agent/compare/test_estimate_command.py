"""``heatsoak estimate`` as it is called."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from agent.bench.model import Step
from agent.bench.store import save
from agent.compare.estimate_command import estimate
from agent.errors import ConfigError
from tests.support.results import bench_result, pipeline, plain_steps

WORK = ("--samples", "1281167", "--epochs", "90")


def called(*arguments: str) -> Result:
    """Return what a call gives."""
    return CliRunner().invoke(estimate, [*WORK, *arguments])


def test_the_usual_share_is_shown_with_its_range() -> None:
    """Nobody mistakes it for a measurement."""
    done = called("--throughput", "2000")

    assert done.exit_code == 0
    assert done.output.splitlines()[0] == "time         22 h 53 min, from 20 h 1 min to 1 d 3 h"
    assert "0.70: 0.6 to 0.8 is usual; not measured here" in done.output
    assert "cost" not in done.output


def test_a_given_share_has_no_range() -> None:
    """It is taken as it is."""
    assert called("--throughput", "2000", "--share", "0.5").output.startswith("time         1 d 8 h\n")


def test_a_result_brings_throughput_and_measured_share(tmp_path: Path) -> None:
    """And the lines say so."""
    save(bench_result(*plain_steps(), Step("pipeline", (pipeline(900.0, 1000.0),))), tmp_path / "r.json")
    done = called("--result", str(tmp_path / "r.json"), "--price-per-hour", "2.5")

    assert "2,222.2 images/s: resnet50 bf16 xla, 224 px, batch 128, measured" in done.output
    assert "0.81: input alone kept tuned 0.90" in done.output
    assert "caution      the share was measured at resnet50 bf16 graph" in done.output
    assert "at 2.5 an hour and card" in done.output
    assert "time         17 h 48 min, from 16 h 1 min to 20 h 1 min\n" in done.output


def test_json_has_the_same_numbers() -> None:
    """For scripts."""
    told = json.loads(called("--throughput", "2000", "--json").output)
    assert told["time_s"] == pytest.approx(1281167 * 90 / 1400)
    assert told["share"]["origin"] == "usual"


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "1e300"])
def test_epochs_are_a_number_of_this_world(value: str) -> None:
    """What no training has is refused, never computed with."""
    done = CliRunner().invoke(estimate, ["--samples", "1", "--epochs", value, "--throughput", "1"])
    assert done.exit_code == 2
    assert "--epochs" in done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "neither was given"),
        (("--throughput", "1", "--result", "x"), "both were given"),
        (("--throughput", "0"), "--throughput"),
        (("--throughput", "1e-300"), "--throughput"),
        (("--throughput", "nan"), "'nan' is not a number"),
        (("--throughput", "inf"), "--throughput"),
        (("--throughput", "1", "--price-per-hour", "inf"), "--price-per-hour"),
        (("--throughput", "1", "--cards", "2", "--efficiency", "nan"), "'nan' is not a number"),
        (("--throughput", "1", "--share", "1.2"), "--share"),
        (("--throughput", "1", "--share", "nan"), "'nan' is not a number"),
        (("--throughput", "1", "--dtype", "bf16"), "--dtype: without effect without --result"),
        (("--throughput", "1", "--efficiency", "0.9"), "--efficiency: without effect"),
        (("--throughput", "1", "--cards", "0"), "--cards"),
    ],
)
def test_wrong_usage_is_told(arguments: tuple[str, ...], told: str) -> None:
    """Exit code 2 and the option at fault."""
    done = called(*arguments)
    assert done.exit_code == 2
    assert told in done.output


def test_a_missing_result_is_told(tmp_path: Path) -> None:
    """With its path."""
    done = called("--result", str(tmp_path / "none.json"))
    assert isinstance(done.exception, ConfigError)
    assert "none.json" in str(done.exception)
